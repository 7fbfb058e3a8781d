package networks

// connect updates a network's ports on other hosts; the lock is held.
func (n *network) connect() {
	h, uid := n.networks.hosts.Load(), string(n.object.UID)
	switch {
	case h == nil || n.ending:
	case n.running == nil && n.driver == nil || len(n.attachments) == 0:
		h.Disconnect(uid)
	default:
		h.Connect(uid, n.object)
	}
}
