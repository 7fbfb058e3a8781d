package radio

// Golden is the increment of SplitMix64's state: 2^64 divided by the golden ratio, made odd.
const Golden = 0x9e3779b97f4a7c15

// Mix is the output function of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
// generators, OOPSLA 2014). With a counter as its state it is a counter-based generator.
func Mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
