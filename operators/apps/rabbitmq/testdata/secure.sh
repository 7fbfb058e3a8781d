set -eu
umask 077
cd /vignette/run
rm -f .erlang.cookie
printf %s 9adc546e84816aed8e18c3081bbb9a5e > .erlang.cookie
cp rabbitmq.conf started.conf
printf 'default_user = %s\ndefault_pass = %s\n' "$(cat /vignette/security/username)" "$(cat /vignette/security/password)" >> started.conf
export HOME=/vignette/run
export RABBITMQ_CONF_ENV_FILE=/dev/null
export RABBITMQ_NODENAME=rabbit@localhost
export RABBITMQ_CONFIG_FILE=/vignette/run/started.conf
export RABBITMQ_ENABLED_PLUGINS_FILE=/vignette/run/enabled_plugins
export RABBITMQ_MNESIA_BASE=/vignette/run/mnesia
export RABBITMQ_GENERATED_CONFIG_DIR=/vignette/run/generated
export RABBITMQ_LOG_BASE=/vignette/run
export RABBITMQ_LOGS=-
export RABBITMQ_PID_FILE=/vignette/run/rabbitmq.pid
export ERL_CRASH_DUMP_BYTES=0
export RUNNING_UNDER_SYSTEMD=true
export ERL_EPMD_ADDRESS=127.0.0.1
exec /usr/lib/rabbitmq/bin/rabbitmq-server
