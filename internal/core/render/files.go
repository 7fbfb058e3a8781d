package render

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Files of the user's own apps are mounted one by one with a subPath. So they may be anywhere in the image, and a later
// change of the ConfigMap does not reach a running container. Contents in the spec become annotations of the pod, so that
// there is no other object to keep consistent.

const (
	// fileMode lets everybody read, because the app may have any user id, and nobody write.
	fileMode = int32(0o444)
	// contentFile is the only file of a volume.
	contentFile = "content"
	// annotationLimit is the API server's limit of all annotations of an object.
	annotationLimit = 256 << 10
	// annotationReserve is for what others add to a pod, such as Multus.
	annotationReserve = 16 << 10
)

func fileAnnotation(app string, i int) string { return fmt.Sprintf("vignette.dev/file.%s.%d", app, i) }

func fileVolume(app string, i int) string { return fmt.Sprintf("file-%s-%d", app, i) }

// fileAnnotations are the contents of an app's files that the spec holds.
func fileAnnotations(app v1alpha1.App) map[string]string {
	found := map[string]string{}
	for i, file := range filesOf(app) {
		if file.ConfigMap == nil {
			found[fileAnnotation(app.Name, i)] = ptr.Deref(file.Content, "")
		}
	}
	return found
}

func fileMounts(app v1alpha1.App) (mounts []corev1.VolumeMount) {
	for i, file := range filesOf(app) {
		mounts = append(mounts, contentMount(fileVolume(app.Name, i), file.Path))
	}
	return mounts
}

// annotationVolume is a volume whose only file is the value of an annotation.
func annotationVolume(name, annotation string) corev1.Volume {
	source := &corev1.DownwardAPIVolumeSource{DefaultMode: ptr.To(fileMode), Items: []corev1.DownwardAPIVolumeFile{{
		Path: contentFile, FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.annotations['" + annotation + "']"},
	}}}
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{DownwardAPI: source}}
}

// contentMount mounts the only file of a volume at a path.
func contentMount(volume, path string) corev1.VolumeMount {
	return corev1.VolumeMount{Name: volume, MountPath: path, SubPath: contentFile, ReadOnly: true}
}

func fileVolumes(app v1alpha1.App) (volumes []corev1.Volume) {
	for i, file := range filesOf(app) {
		volume := corev1.Volume{Name: fileVolume(app.Name, i)}
		if file.ConfigMap != nil {
			volume.ConfigMap = &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: file.ConfigMap.Name}, DefaultMode: ptr.To(fileMode),
				Items: []corev1.KeyToPath{{Key: file.ConfigMap.Key, Path: contentFile}},
			}
		} else {
			volume = annotationVolume(volume.Name, fileAnnotation(app.Name, i))
		}
		volumes = append(volumes, volume)
	}
	return volumes
}

// ConfigMapKeys are the keys of ConfigMaps that the experiment's apps use, each once, with the first field that names it.
func ConfigMapKeys(spec *v1alpha1.ExperimentSpec) (keys []ConfigMapKey) {
	seen := map[v1alpha1.KeyReference]bool{}
	add := func(reference *v1alpha1.KeyReference, path *field.Path, text bool) {
		if reference != nil && !seen[*reference] {
			seen[*reference] = true
			path = path.Child("configMap")
			keys = append(keys, ConfigMapKey{*reference, path.Child("name"), path.Child("key"), text})
		}
	}
	for i, app := range spec.Apps {
		path := field.NewPath("spec", "apps").Index(i)
		for j, variable := range app.Env {
			add(variable.ConfigMap, path.Child("env").Index(j), true)
		}
		if reference, at := scriptReference(app, path); reference != nil {
			add(reference, at, true)
		}
		for j, file := range app.Files {
			add(file.ConfigMap, path.Child("files").Index(j), false)
		}
		if reference := payloadReference(app); reference != nil && !seen[*reference] {
			seen[*reference] = true
			at := path.Child("publisher", "payload") // one field has name and key
			keys = append(keys, ConfigMapKey{*reference, at, at, false})
		}
	}
	return keys
}

// ConfigMapKey is what an app takes from a ConfigMap, and the fields that say so.
type ConfigMapKey struct {
	v1alpha1.KeyReference
	NamePath, KeyPath *field.Path
	// Text means that it is for an environment variable or a script, which cannot be binary.
	Text bool
}

// Reference names another object of the experiment's namespace, maybe a key in it, and the field that names it.
type Reference struct {
	Name, Key string
	Path      *field.Path
}

// SecretReferences are the keys of Secrets with the experiment's variables and user data.
func SecretReferences(in Input) (references []Reference) {
	spec := &in.Experiment.Spec
	for i, app := range spec.Apps {
		for j, variable := range app.Env {
			if variable.Secret != nil {
				references = append(references, Reference{variable.Secret.Name, variable.Secret.Key, field.NewPath("spec", "apps").Index(i).Child("env").Index(j).Child("secret", "name")})
			}
		}
	}
	for i, vm := range machineSettings(in) {
		if vm.CloudInit != nil && vm.CloudInit.Secret != "" {
			references = append(references, Reference{vm.CloudInit.Secret, UserDataKey, field.NewPath("spec", "nodes").Index(i).Child("vm", "cloudInit", "secret")})
		}
	}
	return references
}

// ClaimReferences are the volume claims with the root disks of virtual machines.
func ClaimReferences(in Input) (references []Reference) {
	for i, vm := range machineSettings(in) {
		if vm.PersistentVolumeClaim != "" {
			references = append(references, Reference{vm.PersistentVolumeClaim, "", field.NewPath("spec", "nodes").Index(i).Child("vm", "persistentVolumeClaim")})
		}
	}
	return references
}

// machineSettings are those of the spec's virtual machines, by the index of their nodes.
func machineSettings(in Input) iter.Seq2[int, v1alpha1.VirtualMachine] {
	return func(yield func(int, v1alpha1.VirtualMachine) bool) {
		for i, node := range in.Experiment.Spec.Nodes {
			if node.Runtime == v1alpha1.RuntimeVM && !yield(i, settings(in, node.VM)) {
				return
			}
		}
	}
}

// reservedPaths must not be files of an app, because they would break the container or the platform's mounts.
var reservedPaths = map[string]bool{"/tmp": true, "/vignette": true, "/dev": true, "/proc": true, "/sys": true}

// containersFiles are files in each container, and no folders.
var containersFiles = []string{"/etc/hosts", "/etc/hostname", "/etc/resolv.conf"}

// isReserved reports whether the container itself has a path, or cannot have it.
func isReserved(path string) bool {
	return reservedPaths[path] || slices.ContainsFunc(containersFiles, func(file string) bool {
		return path == file || strings.HasPrefix(path, file+"/") || strings.HasPrefix(file, path+"/")
	})
}

func checkFiles(app v1alpha1.App, path *field.Path) (errs field.ErrorList) {
	for i, file := range app.Files {
		at := path.Child("files").Index(i).Child("path")
		if isReserved(file.Path) {
			errs = append(errs, field.Invalid(at, file.Path, "is the container's own: give the file another path"))
		}
		for _, other := range app.Files {
			if strings.HasPrefix(file.Path, other.Path+"/") {
				errs = append(errs, field.Invalid(at, file.Path, fmt.Sprintf("is in %s, which is a file itself", other.Path)))
			}
		}
	}
	return errs
}

// checkAnnotations finds nodes whose apps have more content in the spec than fits a pod.
func checkAnnotations(pods []*corev1.Pod) (errs field.ErrorList) {
	for _, pod := range pods {
		size := annotationReserve
		for name, value := range pod.Annotations {
			size += len(name) + len(value)
		}
		if size > annotationLimit {
			errs = append(errs, field.Invalid(field.NewPath("spec", "apps"), pod.Labels[v1alpha1.LabelNode],
				fmt.Sprintf("the files of this node's apps have %d KiB of content in the spec and at most %d fit: put them into ConfigMaps", size>>10, annotationLimit>>10)))
			return errs // nodes of one group are equal
		}
	}
	return nil
}

func addFiles(p *corev1.Pod, app v1alpha1.App) {
	p.Spec.Volumes = append(p.Spec.Volumes, fileVolumes(app)...)
	maps.Copy(p.Annotations, fileAnnotations(app))
}
