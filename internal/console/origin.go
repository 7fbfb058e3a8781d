package console

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
)

// secureHeaders of every answer. Pages and proxied answers set their own policy.
func secureHeaders(header http.Header) {
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; sandbox")
}

// checkOrigin refuses requests that another site's page can have caused.
// A name other than the console's own may be the other site's, which resolves it to this address (DNS rebinding).
func (c *Console) checkOrigin(r *http.Request) error {
	own, known := c.hosts[r.Host]
	if !known {
		return Errorf(http.StatusMisdirectedRequest, "this console is not reached as %q: use the address that it was started with", r.Host)
	}
	origin := r.Header.Get("Origin")
	if origin != "" && origin != own {
		return Errorf(http.StatusForbidden, "a page of %s may not use this console", origin)
	}
	if origin == "" && (changes(r.Method) || isUpgrade(r)) {
		return Errorf(http.StatusForbidden, "%s needs the header Origin: %s", describe(r), own)
	}
	if site := r.Header.Get("Sec-Fetch-Site"); !isPage(r) && site != "" && site != "same-origin" && site != "none" {
		return Errorf(http.StatusForbidden, "a page of another site may not use this console")
	}
	return nil
}

// isPage reports whether a request is for a part of the page, to which other sites may link, or comes back from a login.
func isPage(r *http.Request) bool {
	return r.URL.Path == callbackPath || !strings.HasPrefix(r.URL.Path, "/k8s/") && !strings.HasPrefix(r.URL.Path, "/console/")
}

func describe(r *http.Request) string {
	if isUpgrade(r) {
		return "a WebSocket"
	}
	return r.Method
}

// changes reports whether requests of a method may change something.
func changes(method string) bool {
	return method != http.MethodGet && method != http.MethodHead
}

// isUpgrade reports whether a request asks for another protocol, such as WebSocket.
func isUpgrade(r *http.Request) bool { return r.Header.Get("Upgrade") != "" }

// defaultPorts are those that browsers leave out of an origin and of the header Host.
var defaultPorts = map[string]string{"http": "80", "https": "443"}

// parseOrigin returns an origin and its host as browsers write them.
func parseOrigin(text string) (origin, host string, err error) {
	address, err := url.Parse(strings.ToLower(text))
	if err != nil || defaultPorts[address.Scheme] == "" || address.Hostname() == "" || strings.Trim(address.Path, "/") != "" || address.RawQuery+address.Fragment != "" || address.User != nil {
		return "", "", errors.New("origin " + text + ": want one without a path, such as https://console.example")
	}
	host = strings.TrimSuffix(address.Host, ":"+defaultPorts[address.Scheme])
	return address.Scheme + "://" + host, host, nil
}
