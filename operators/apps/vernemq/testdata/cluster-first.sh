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
address() { awk -v name="$1" '{ for (i = 2; i <= NF; i++) if ($i == name) found = $1 } END { print found }' /etc/hosts; }
sed "s/OWN_ADDRESS/$(address deu)/" vernemq.conf > vernemq/etc/vernemq.conf
sed "s/FIRST_ADDRESS/$(address deu)/" started.erl.in > started.erl
if grep -qs '"accept_eula"' /vernemq/share/schema/*; then
  echo 'this image of VerneMQ is under its makers'\'' end user licence agreement: who accepts it says so by the chart value images.vernemqAcceptEULA=true' >&2
  exit 1
fi
export HOME=/vignette/run ERL_CRASH_DUMP_BYTES=0
exec vernemq/bin/vernemq console -noshell -noinput -run file eval /vignette/run/started.erl
