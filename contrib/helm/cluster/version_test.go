package cluster

import (
	"os"
	"regexp"
	"testing"
	_ "unsafe" // for go:linkname

	"k8s.io/component-base/version"
)

// The builds of Kubernetes set this variable by an option of the linker. Without it the API server reports version 0.0.0, and helm
// refuses the chart.
//
//go:linkname gitVersion k8s.io/component-base/version.gitVersion
var gitVersion string

// Lets the API server report the version of its module.
func setVersion(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^\tk8s\.io/kubernetes (v\S+)$`).FindSubmatch(text)
	if found == nil {
		t.Fatal("go.mod: expected the version of k8s.io/kubernetes")
	}
	gitVersion = string(found[1])
	if err := version.SetDynamicVersion(gitVersion); err != nil {
		t.Fatal(err)
	}
}
