package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/gorilla/websocket"
)

// streamProtocol is the subprotocol of a WebSocket that carries the body of a GET, in binary messages.
// A browser opens six connections of HTTP/1.1 to a server; a followed log must not hold one of them.
const streamProtocol = "stream.vignette.dev"

const (
	// streamClose and a status of HTTP is the code with which a refused stream closes; its reason is the message.
	streamClose = 4000
	// maxReason bytes has the reason of a close.
	maxReason = 120
	// streamPiece is the most bytes of a message.
	streamPiece = 32 << 10
	// streamTimeout is how long a browser may take for a message.
	streamTimeout = 30 * time.Second
	// maxStreamMessage bytes is what a browser may send: it has nothing to say.
	maxStreamMessage = 1 << 10
)

// isStream reports whether a request is for the body of a GET as a WebSocket.
func isStream(r *http.Request) bool {
	return isUpgrade(r) && slices.Contains(websocket.Subprotocols(r), streamProtocol)
}

var streams = websocket.Upgrader{
	Subprotocols: []string{streamProtocol},
	CheckOrigin:  func(*http.Request) bool { return true }, // checkOrigin did
}

// stream sends the body of a path of the API server.
func (c *Console) stream(w http.ResponseWriter, r *http.Request, user *User) error {
	socket, err := streams.Upgrade(w, r, nil)
	if err != nil {
		return nil //nolint:nilerr // it has answered
	}
	defer socket.Close()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	go func() { // until the browser leaves
		defer cancel()
		socket.SetReadLimit(maxStreamMessage)
		for {
			if _, _, err := socket.ReadMessage(); err != nil {
				return
			}
		}
	}()
	code, reason := websocket.CloseNormalClosure, ""
	if err := c.copyBody(ctx, socket, r, user); err != nil {
		code, reason = websocket.CloseInternalServerErr, "the stream broke off"
		var refused *Error
		if errors.As(err, &refused) {
			code, reason = streamClose+refused.Status, refused.Message
		}
	}
	_ = socket.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, shortened(reason)), time.Now().Add(streamTimeout)) // it may be gone
	return nil
}

// copyBody of a path to a socket, until it ends.
func (c *Console) copyBody(ctx context.Context, socket *websocket.Conn, r *http.Request, user *User) error {
	out := (&http.Request{Method: http.MethodGet, Header: http.Header{"Accept": {"*/*"}}}).WithContext(ctx)
	rewrite(&httputil.ProxyRequest{In: r, Out: out}, user.Server)
	keep(out.Header, []string{"Accept", "User-Agent"})
	answer, err := user.Transport.RoundTrip(out)
	if err != nil {
		return c.explain(user, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return Errorf(answer.StatusCode, "%s", messageOf(answer))
	}
	piece := make([]byte, streamPiece)
	for {
		n, err := answer.Body.Read(piece)
		if n > 0 {
			_ = socket.SetWriteDeadline(time.Now().Add(streamTimeout))
			if err := socket.WriteMessage(websocket.BinaryMessage, piece[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// maxErrorBytes are read of an answer that is an error.
const maxErrorBytes = 4 << 10

// messageOf an answer that is an error: Kubernetes' Status, an error of the archive, or the words of HTTP.
func messageOf(answer *http.Response) string {
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxErrorBytes)) // what came is enough
	var told struct{ Message, Error string }
	if json.Unmarshal(text, &told) == nil && told.Message+told.Error != "" {
		return told.Message + told.Error
	}
	return fmt.Sprintf("the API server answered %d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
}

// shortened to the bytes that a close has room for.
func shortened(text string) string {
	if len(text) <= maxReason {
		return text
	}
	text = text[:maxReason-len("…")]
	for !utf8.ValidString(text) {
		text = text[:len(text)-1]
	}
	return text + "…"
}
