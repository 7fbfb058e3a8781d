package olsr

// SetNumbers sets a Router's sequence numbers.
func SetNumbers(r Router, sequence, ansn uint16) {
	r.(*router).seq, r.(*router).ansn = sequence, ansn
}
