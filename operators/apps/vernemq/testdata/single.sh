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
cookie=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
sed "s/OWN_COOKIE/$cookie/" vernemq.conf > vernemq/etc/vernemq.conf
cp started.erl.in started.erl
if grep -qs '"accept_eula"' /vernemq/share/schema/*; then
  echo 'this image of VerneMQ is under its makers'\'' end user licence agreement: who accepts it says so by the chart value images.vernemqAcceptEULA=true' >&2
  exit 1
fi
export HOME=/vignette/run ERL_CRASH_DUMP_BYTES=0
export ERL_EPMD_ADDRESS=127.0.0.1
exec vernemq/bin/vernemq console -noshell -noinput -run file eval /vignette/run/started.erl
