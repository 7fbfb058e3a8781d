package runapi

import "net/url"

// The archive is also an API of Kubernetes: the API server authenticates the caller, authorises by RBAC, and passes the request on.
// A team's archive is the object DefaultArchive of the resource archives in the team's namespace; its subresource proxy has this
// package's paths. The name proxy matters: the API server ends other requests after a minute, also downloads and followed logs.
const (
	ArchiveGroup       = "results.vignette.dev"
	ArchiveVersion     = "v1alpha1"
	ArchiveResource    = "archives"
	ArchiveSubresource = "proxy"
	DefaultArchive     = "default"
)

// ArchivePath is the API server's path of a namespace's archive, or of all namespaces' if empty. This package's paths follow it.
func ArchivePath(namespace string) string {
	base := "/apis/" + ArchiveGroup + "/" + ArchiveVersion
	if namespace != "" {
		base += "/namespaces/" + url.PathEscape(namespace)
	}
	return base + "/" + ArchiveResource + "/" + DefaultArchive + "/" + ArchiveSubresource
}
