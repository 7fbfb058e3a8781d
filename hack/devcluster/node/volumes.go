package node

import (
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

const (
	volumesDir      = "/var/lib/local-volumes"
	volumesPerNode  = 8
	volumeSize      = "10Gi"
	volumesPath     = "/api/v1/persistentvolumes"
	volumesInterval = 3 * time.Second
	storageClass    = "local"
)

// keepVolumes offers the node's folders as local persistent volumes. It empties a volume and
// offers it again after its claim is deleted.
func keepVolumes(a *api, nodeName string) {
	repeat("volumes", volumesInterval, func() error { return keepVolumesOnce(a, nodeName) })
}

func keepVolumesOnce(a *api, nodeName string) error {
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Status   struct{ Phase string }
		}
	}
	if err := a.call(http.MethodGet, volumesPath, "", nil, &list); err != nil {
		return err
	}
	phases := map[string]string{}
	for _, item := range list.Items {
		phases[item.Metadata.Name] = item.Status.Phase
	}
	var problems []error
	for number := 1; number <= volumesPerNode; number++ {
		name := fmt.Sprintf("local-%s-%d", nodeName, number)
		folder := filepath.Join(volumesDir, fmt.Sprint(number))
		switch phase, exists := phases[name]; {
		case !exists:
			problems = append(problems, offerVolume(a, name, nodeName, folder))
		case phase == "Released":
			problems = append(problems, freeVolume(a, name, folder))
		}
	}
	return errors.Join(problems...)
}

// offerVolume makes a new volume. It sets aside, and does not delete, data of a volume that
// the cluster does not know (after etcd lost its data).
func offerVolume(a *api, name, nodeName, folder string) error {
	if entries, err := os.ReadDir(folder); err == nil && len(entries) > 0 {
		kept := folder + ".kept-" + time.Now().UTC().Format("20060102T150405")
		if err := os.Rename(folder, kept); err != nil {
			return err
		}
		log.Printf("volume %s: unknown to the cluster, but holds data: moved to %s", name, kept)
	}
	if err := emptyFolder(folder); err != nil {
		return err
	}
	return a.call(http.MethodPost, volumesPath, "application/json", persistentVolume(name, nodeName, folder), nil)
}

// freeVolume does what the reclaim policy Delete would do.
func freeVolume(a *api, name, folder string) error {
	if err := emptyFolder(folder); err != nil {
		return err
	}
	unbind := map[string]any{"spec": map[string]any{"claimRef": nil}}
	return a.call(http.MethodPatch, volumesPath+"/"+name, "application/merge-patch+json", unbind, nil)
}

// emptyFolder makes a new folder, as the last pod also changed owner and mode.
func emptyFolder(folder string) error {
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	return os.MkdirAll(folder, 0o755)
}

func persistentVolume(name, nodeName, folder string) map[string]any {
	onThisNode := map[string]any{"key": "kubernetes.io/hostname", "operator": "In", "values": []string{nodeName}}
	return map[string]any{
		"apiVersion": "v1", "kind": "PersistentVolume",
		"metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"capacity":                      map[string]any{"storage": volumeSize},
			"accessModes":                   []string{"ReadWriteOnce"},
			"persistentVolumeReclaimPolicy": "Retain",
			"storageClassName":              storageClass,
			"local":                         map[string]any{"path": folder},
			"nodeAffinity": map[string]any{"required": map[string]any{
				"nodeSelectorTerms": []any{map[string]any{"matchExpressions": []any{onThisNode}}},
			}},
		},
	}
}
