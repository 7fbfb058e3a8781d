set -eu
umask 077
user=$(cat /vignette/security/username)
password=$(cat /vignette/security/password)
printf '%s:%s\n' "$user" "$password" > /vignette/run/passwords
mosquitto_passwd -U /vignette/run/passwords
sed -e "s/@USERNAME@/$user/" -e "s/@PASSWORD@/$password/" /vignette/run/mosquitto.conf.in > /vignette/run/mosquitto.conf
exec /usr/sbin/mosquitto -c /vignette/run/mosquitto.conf
