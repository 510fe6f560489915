package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// Collects the warnings of the API server, and the requests of helm that write.
type record struct {
	mutex    sync.Mutex
	warnings []string
	writes   []write
}

type write struct {
	method, path, fieldValidation string
	status                        int
}

// HandleWarningHeader is called by clients of the Kubernetes libraries.
func (r *record) HandleWarningHeader(code int, agent, text string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.warnings = append(r.warnings, text)
}

// Returns what was collected since the last call.
func (r *record) take() (warnings []string, writes []write) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	warnings, writes = r.warnings, r.writes
	r.warnings, r.writes = nil, nil
	return warnings, writes
}

func (r *record) response(response *http.Response) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.warnings = append(r.warnings, response.Header.Values("Warning")...)
	request := response.Request
	if slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}, request.Method) {
		r.writes = append(r.writes, write{request.Method, request.URL.Path, request.URL.Query().Get("fieldValidation"), response.StatusCode})
	}
	return nil
}

// Starts a proxy on 127.0.0.1 (https, because clients send tokens only there), so that each reply to helm is seen, and writes a kubeconfig with its address.
func (r *record) proxy(t *testing.T, s *servers) (kubeconfig string) {
	t.Helper()
	ca, err := os.ReadFile(s.ca)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		t.Fatalf("%s: expected certificates", s.ca)
	}
	proxy := httptest.NewTLSServer(&httputil.ReverseProxy{
		Rewrite:        func(p *httputil.ProxyRequest) { p.SetURL(&url.URL{Scheme: "https", Host: s.address}) },
		Transport:      &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true},
		ModifyResponse: r.response,
		FlushInterval:  -1, // watches
	})
	t.Cleanup(func() {
		proxy.CloseClientConnections()
		proxy.Close()
	})
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: proxy.Certificate().Raw})
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{ name: test, cluster: { server: %q, certificate-authority-data: %q } }]
users: [{ name: test, user: { token: %q } }]
contexts: [{ name: test, context: { cluster: test, user: test } }]
current-context: test
`, proxy.URL, base64.StdEncoding.EncodeToString(certificate), s.token)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}
