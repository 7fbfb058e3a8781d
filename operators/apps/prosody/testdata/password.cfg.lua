local user = assert(io.open("/vignette/security/username")):read("l")

data_path = "/vignette/run/prosody"
certificates = "/vignette/run/prosody"
pidfile = "/vignette/run/prosody.pid"
log = { { levels = { min = "info" }, to = "console" } }

modules_enabled = { "disco", "roster", "saslauth", "ping", "posix", "http_openmetrics" }
modules_disabled = { "s2s", "s2s_auth_certs", "offline" }
interfaces = { "*" }
c2s_ports = { 5222 }
c2s_stanza_size_limit = 25165824
authentication = "internal_hashed"
admins = { user .. "@vignette" }
default_storage = "memory"
storage = { accounts = "internal" }
c2s_require_encryption = false

statistics = "internal"
statistics_interval = "manual"
http_ports = { 9100 }
http_interfaces = { "*" }
https_ports = {}
openmetrics_allow_cidr = "0.0.0.0/0"

VirtualHost "vignette"

Component "pubsub.vignette" "pubsub"
autocreate_on_publish = true
autocreate_on_subscribe = true
