package exi

import (
	"fmt"
	"slices"
	"strings"
)

// maxCharacters is the largest set of characters that text is restricted to; text with more is not restricted.
const maxCharacters = 255

// patternReader collects the characters of a regular expression of XML schema (EXI 1.0, appendix E).
type patternReader struct {
	left []rune
	set  map[rune]bool
	all  bool
}

// charactersOf returns the characters that patterns allow, in order; none if they restrict too little.
func charactersOf(patterns []string) ([]rune, error) {
	p := &patternReader{set: map[rune]bool{}}
	for _, pattern := range patterns {
		p.left = []rune(pattern)
		for len(p.left) > 0 {
			if err := p.next(); err != nil {
				return nil, fmt.Errorf("pattern %q: %w", pattern, err)
			}
		}
	}
	if p.all || len(p.set) > maxCharacters {
		return nil, nil
	}
	characters := make([]rune, 0, len(p.set))
	for c := range p.set {
		characters = append(characters, c)
	}
	slices.Sort(characters)
	return characters, nil
}

func (p *patternReader) take() rune {
	if len(p.left) == 0 {
		return 0
	}
	c := p.left[0]
	p.left = p.left[1:]
	return c
}

func (p *patternReader) next() error {
	switch c := p.take(); c {
	case '(', ')', '|', '?', '*', '+':
	case '{':
		for len(p.left) > 0 && p.take() != '}' {
		}
	case '.':
		p.all = true
	case '[':
		return p.class()
	case '\\':
		characters, err := p.escape()
		p.add(characters...)
		return err
	default:
		p.add(c)
	}
	return nil
}

func (p *patternReader) add(characters ...rune) {
	for _, c := range characters {
		p.set[c] = true
	}
}

// escape returns the characters of what follows a backslash.
func (p *patternReader) escape() ([]rune, error) {
	switch c := p.take(); {
	case c == 'n':
		return []rune{'\n'}, nil
	case c == 'r':
		return []rune{'\r'}, nil
	case c == 't':
		return []rune{'\t'}, nil
	case c == 's':
		return []rune(whiteSpace), nil
	case strings.ContainsRune(`\|.?*+(){}-[]^`, c):
		return []rune{c}, nil
	case strings.ContainsRune("dDwWiIcCS", c):
		p.all = true
		return nil, nil
	default:
		return nil, fmt.Errorf("escape \\%c is not supported", c)
	}
}

// class reads a class of characters after its bracket.
func (p *patternReader) class() error {
	if len(p.left) > 0 && p.left[0] == '^' {
		p.all = true
	}
	var last rune
	for {
		c := p.take()
		switch {
		case c == 0:
			return fmt.Errorf("a class has no end")
		case c == ']':
			return nil
		case c == '[':
			return fmt.Errorf("subtraction of classes is not supported")
		case c == '-' && last != 0 && len(p.left) > 0 && p.left[0] != ']':
			if err := p.through(last); err != nil {
				return err
			}
			last = 0
			continue
		case c == '\\':
			characters, err := p.escape()
			if err != nil {
				return err
			}
			p.add(characters...)
			if last = 0; len(characters) == 1 {
				last = characters[0]
			}
			continue
		}
		p.add(c)
		last = c
	}
}

// through adds the characters from one to the next.
func (p *patternReader) through(from rune) error {
	to := p.take()
	if to == '\\' {
		characters, err := p.escape()
		if err != nil {
			return err
		}
		if len(characters) == 1 {
			to = characters[0]
		}
	}
	if to < from {
		return fmt.Errorf("%c-%c is not a range", from, to)
	}
	if to-from > maxCharacters {
		p.all = true
		return nil
	}
	for c := from; c <= to; c++ {
		p.add(c)
	}
	return nil
}
