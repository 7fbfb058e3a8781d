package console

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"time"
)

// pendingLogin is a login that the issuer has not confirmed yet. Its browser keeps it, so that nobody else's ends it.
type pendingLogin struct {
	State    string    `json:"state"`
	Nonce    string    `json:"nonce"`
	Verifier string    `json:"verifier"`
	To       string    `json:"to"`
	Until    time.Time `json:"until"`
}

// maxTo bounds the page after the login, as browsers keep no cookie above 4 KiB.
const maxTo = 1024

// loginSeal encrypts and authenticates logins with a key of this process.
type loginSeal struct{ aead cipher.AEAD }

func newLoginSeal() (*loginSeal, error) {
	var key [32]byte
	_, _ = rand.Read(key[:]) // never fails
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return &loginSeal{aead}, err
}

func (s *loginSeal) seal(login pendingLogin) (string, error) {
	if len(login.To) > maxTo {
		login.To = "/"
	}
	text, err := json.Marshal(login)
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, text, nil)), err
}

// open returns a login that was sealed here and may still be completed.
func (s *loginSeal) open(sealed string, now time.Time) (login pendingLogin, ok bool) {
	content, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return login, false
	}
	text, err := s.aead.Open(nil, nil, content, nil)
	if err != nil || json.Unmarshal(text, &login) != nil {
		return login, false
	}
	return login, now.Before(login.Until)
}
