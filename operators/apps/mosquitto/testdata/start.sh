set -eu
umask 077
user=$(cat /vignette/security/username)
password=$(cat /vignette/security/password)
printf '%s\n%s\n' "$password" "$password" | mosquitto_passwd -c /vignette/run/passwords "$user" > /dev/null
literal() { printf %s "$1" | sed 's/[&/\]/\\&/g'; }
sed -e "s/@USERNAME@/$(literal "$user")/" -e "s/@PASSWORD@/$(literal "$password")/" /vignette/run/mosquitto.conf.in > /vignette/run/mosquitto.conf
exec /usr/sbin/mosquitto -c /vignette/run/mosquitto.conf
