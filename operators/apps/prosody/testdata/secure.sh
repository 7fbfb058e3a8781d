set -eu
umask 077
mkdir -p /vignette/run/prosody
prosodyctl --config /vignette/run/prosody.cfg.lua register "$(cat /vignette/security/username)" vignette "$(cat /vignette/security/password)" > /dev/null
exec /usr/bin/prosody --config /vignette/run/prosody.cfg.lua -F
