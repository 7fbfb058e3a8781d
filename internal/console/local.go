package console

import (
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"strconv"
)

// Local is the Access of one user on loopback: whoever has the token of this start is the user.
type Local struct {
	user *User
	// token is in the address that the user opens; session is the value of the cookie.
	token, session, cookie string
}

// NewLocal makes the access of a user at a port. Cookies do not tell ports apart, so the port is in the cookie's name.
func NewLocal(user *User, port int) *Local {
	user.Mode = "local"
	return &Local{user: user, token: randomText(), session: randomText(), cookie: "vignette-" + strconv.Itoa(port)}
}

// Token logs in; it is for the fragment of an address, which browsers do not send.
func (l *Local) Token() string { return l.token }

// Register implements Access.
func (l *Local) Register(mux *http.ServeMux) { mux.HandleFunc("POST /console/v1/login", l.login) }

// maxLoginBytes of the body of a login.
const maxLoginBytes = 4 << 10

func (l *Local) login(w http.ResponseWriter, r *http.Request) {
	var login struct {
		Token string `json:"token"`
	}
	if json.NewDecoder(http.MaxBytesReader(w, r.Body, maxLoginBytes)).Decode(&login) != nil {
		WriteError(w, Errorf(http.StatusBadRequest, `a login is {"token": "…"}`))
		return
	}
	if !equal(login.Token, l.token) {
		WriteError(w, Errorf(http.StatusUnauthorized, "this address is of an earlier start: open the one that vignette ui printed last"))
		return
	}
	http.SetCookie(w, &http.Cookie{Name: l.cookie, Value: l.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	w.WriteHeader(http.StatusNoContent)
}

// User implements Access.
func (l *Local) User(r *http.Request) (*User, error) {
	cookie, err := r.Cookie(l.cookie)
	if err != nil || !equal(cookie.Value, l.session) {
		return nil, Errorf(http.StatusUnauthorized, "there is no session: open the address that vignette ui printed")
	}
	return l.user, nil
}

// equal compares secrets in the same time, whatever they are.
func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
