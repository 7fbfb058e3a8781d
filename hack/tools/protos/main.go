// protos writes the Go code of definitions of Protocol Buffers, as protoc does with protoc-gen-go, without a protoc to install.
//
//	protos --from DIR --out DIR FILE...
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	gengo "google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	from := flag.String("from", ".", "the folder that the paths of definitions begin in")
	out := flag.String("out", ".", "the folder that the paths of Go files begin in")
	flag.Parse()
	if err := write(context.Background(), *from, *out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "protos:", err)
		os.Exit(1)
	}
}

// write writes the code of definitions, which import no others.
func write(ctx context.Context, from, out string, definitions []string) error {
	compiler := protocompile.Compiler{Resolver: &protocompile.SourceResolver{ImportPaths: []string{from}}, SourceInfoMode: protocompile.SourceInfoStandard}
	compiled, err := compiler.Compile(ctx, definitions...)
	if err != nil {
		return err
	}
	parameter := "paths=source_relative"
	request := &pluginpb.CodeGeneratorRequest{FileToGenerate: definitions, Parameter: &parameter}
	for _, f := range compiled {
		request.ProtoFile = append(request.ProtoFile, protoutil.ProtoFromFileDescriptor(f))
	}
	plugin, err := protogen.Options{}.New(request)
	if err != nil {
		return err
	}
	for _, f := range plugin.Files {
		gengo.GenerateFile(plugin, f)
	}
	response := plugin.Response()
	if response.Error != nil {
		return errors.New(response.GetError())
	}
	for _, f := range response.File {
		if err := os.WriteFile(filepath.Join(out, f.GetName()), []byte(f.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
