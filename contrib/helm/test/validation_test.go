package chart

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	internalapps "k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	appsvalidation "k8s.io/kubernetes/pkg/apis/apps/validation"
	internalcore "k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/capabilities"
)

// Sets the defaults of the API server, and validates as it does. Objects of the Prometheus operator are skipped.
func validated(t *testing.T, text string) (objects int, faults []string) {
	t.Helper()
	capabilities.Initialize(capabilities.Capabilities{AllowPrivileged: true})
	for _, doc := range strings.Split("\n"+text, "\n---\n") {
		if !strings.Contains(doc, "\nkind: ") || strings.Contains(doc, "apiVersion: monitoring.coreos.com/") {
			continue
		}
		object, kind, err := legacyscheme.Codecs.UniversalDecoder().Decode([]byte(doc), nil, nil)
		if err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		var found field.ErrorList
		switch o := object.(type) {
		case *internalapps.DaemonSet:
			found = appsvalidation.ValidateDaemonSet(o, validation.PodValidationOptions{})
		case *internalcore.ConfigMap:
			found = validation.ValidateConfigMap(o)
		case *internalcore.ServiceAccount:
			found = validation.ValidateServiceAccount(o)
		default:
			t.Errorf("no validation of %s", kind)
		}
		for _, e := range found {
			faults = append(faults, e.Error())
		}
		objects++
	}
	return objects, faults
}

func TestValidationOfTheAPIServer(t *testing.T) {
	all := 0
	for _, file := range valueFiles(t) {
		text, errors, ok := helm("template", "ringwise", chart, "--namespace", namespace, "--values", file)
		if !ok {
			t.Fatal(errors)
		}
		objects, faults := validated(t, text)
		if len(faults) > 0 {
			t.Errorf("%s: %v", file, faults)
		}
		all += objects
		// The reason for `privileged`: without it, the kernel files that ringwise writes are read-only.
		unmasked := strings.ReplaceAll(text, "privileged: true", "procMount: Unmasked")
		if _, faults := validated(t, unmasked); !strings.Contains(strings.Join(faults, "\n"), "`hostUsers` must be false") {
			t.Errorf("%s: expected that procMount needs hostUsers: false, found %v", file, faults)
		}
	}
	if all < 15 {
		t.Errorf("%d objects", all)
	}
}
