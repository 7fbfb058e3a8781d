set -eu
umask 077
cd /vignette/run
mkdir -p vernemq/etc vernemq/log vernemq/data
for part in /vernemq/*; do
  case "${part##*/}" in
  etc|log|data) ;;
  bin) rm -rf vernemq/bin; cp -r "$part" vernemq/bin ;;
  *) ln -sfn "$part" "vernemq/${part##*/}" ;;
  esac
done
cp vernemq.conf vernemq/etc/vernemq.conf
if grep -qs '"accept_eula"' /vernemq/share/schema/*; then
  echo 'this image of VerneMQ is under its makers'\'' end user licence agreement: who accepts it says so by the chart value images.vernemqAcceptEULA=true' >&2
  exit 1
fi
printf '%s:%s\n' "$(cat /vignette/security/username)" "$(cat /vignette/security/password)" > vmq.passwd
vernemq/bin/vmq-passwd -U vmq.passwd
export HOME=/vignette/run ERL_CRASH_DUMP_BYTES=0
export ERL_EPMD_ADDRESS=127.0.0.1
exec vernemq/bin/vernemq console -noshell -noinput
