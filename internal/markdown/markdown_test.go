package markdown

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const page = "# Title\n\nText:\n\n```sh\nls\n```\n\n1. Item\n\n   ```\n   a\n   ```\n"

func TestBlocksHaveTheirLanguageTextAndPlace(t *testing.T) {
	want := []Block{
		{Language: "sh", Text: "ls\n", Before: "# Title\n\nText:\n\n", Line: 5},
		{Text: "   a\n", Before: "\n\n1. Item\n\n", Line: 11},
	}
	if diff := cmp.Diff(want, Blocks(page)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAPageWithoutItsBlocksIsText(t *testing.T) {
	if got, want := WithoutBlocks(page), "# Title\n\nText:\n\n\n\n1. Item\n\n\n"; got != want {
		t.Errorf("%q; want %q", got, want)
	}
}
