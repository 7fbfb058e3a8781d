package main

// terrain is the movement of the company of E1, E2 and E6.
type terrain struct {
	Modified bool
}

// Movement returns the scenario's name.
func (t terrain) Movement() string {
	return choose(t.Modified, "anglova-like-modified", "anglova-like")
}

// Company describes whose movement it is.
func (t terrain) Company() string { return choose(t.Modified, "modified Anglova", "Anglova") }

// Pattern returns the pattern of the synthetic movement.
func (t terrain) Pattern() string {
	return choose(t.Modified, "AnglovaLikeModified", "AnglovaLike")
}
