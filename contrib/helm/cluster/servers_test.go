package cluster

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"flag"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/controller/daemon"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
)

const (
	startTimeout = 2 * time.Minute
	stopTimeout  = time.Minute
)

// An API server on a free port of 127.0.0.1, and the controllers that the chart needs. They end with the test.
type servers struct {
	address string // HOST:PORT, https
	token   string
	ca      string // file
	client  *kubernetes.Clientset
}

// Starts everything in a temporary directory, and waits until the API server is ready.
func start(t *testing.T) *servers {
	t.Helper()
	dir := t.TempDir()
	setVersion(t)
	logTo(t, filepath.Join(dir, "kubernetes.log"))
	etcd := startEtcd(t, dir)
	s := &servers{address: freeAddress(t), token: newToken(t), ca: filepath.Join(dir, "apiserver.crt")}
	startAPIServer(t, dir, etcd, s)
	return s
}

// The configuration of a client without the usual limit of requests.
func (s *servers) config(warnings rest.WarningHandler) *rest.Config {
	return &rest.Config{
		Host:            "https://" + s.address,
		BearerToken:     s.token,
		TLSClientConfig: rest.TLSClientConfig{CAFile: s.ca},
		WarningHandler:  warnings,
		QPS:             -1,
	}
}

// The servers write thousands of lines. Only the last warnings and errors are shown, and only if the test fails.
func logTo(t *testing.T, file string) {
	t.Helper()
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	for name, value := range map[string]string{"logtostderr": "false", "stderrthreshold": "FATAL", "one_output": "true"} {
		if err := flags.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	klog.SetOutput(out)
	t.Cleanup(func() {
		klog.Flush()
		klog.SetOutput(os.Stderr)
		_ = out.Close()
		if text, err := os.ReadFile(file); err == nil && t.Failed() {
			faults := slices.DeleteFunc(strings.Split(string(text), "\n"), func(line string) bool {
				return !strings.HasPrefix(line, "W") && !strings.HasPrefix(line, "E") || strings.Contains(line, "Skipping API")
			})
			t.Logf("the last warnings and errors of the log:\n%s", strings.Join(faults[max(0, len(faults)-40):], "\n"))
		}
	})
}

// An address that was free a moment ago.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func newToken(t *testing.T) string {
	t.Helper()
	bytes := make([]byte, 16)
	if _, err := rand.Read(bytes); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(bytes)
}

// Returns the URL for clients.
func startEtcd(t *testing.T, dir string) string {
	t.Helper()
	at := func(address string) []url.URL { return []url.URL{{Scheme: "http", Host: address}} }
	c := embed.NewConfig()
	c.Dir = filepath.Join(dir, "etcd")
	c.LogLevel, c.LogOutputs = "error", []string{filepath.Join(dir, "etcd.log")}
	c.ListenClientUrls, c.ListenPeerUrls = at(freeAddress(t)), at(freeAddress(t))
	c.AdvertiseClientUrls, c.AdvertisePeerUrls = c.ListenClientUrls, c.ListenPeerUrls
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	// The data are removed after the test: no disk has to be waited for.
	c.UnsafeNoFsync = true
	e, err := embed.StartEtcd(c)
	if err != nil {
		t.Fatalf("etcd: %v", err)
	}
	t.Cleanup(e.Close)
	select {
	case <-e.Server.ReadyNotify():
	case <-time.After(startTimeout):
		t.Fatalf("etcd is not ready after %v", startTimeout)
	}
	return c.AdvertiseClientUrls[0].String()
}

func startAPIServer(t *testing.T, dir, etcd string, s *servers) {
	t.Helper()
	host, port, err := net.SplitHostPort(s.address)
	if err != nil {
		t.Fatal(err)
	}
	key, tokens := filepath.Join(dir, "service-account.key"), filepath.Join(dir, "tokens.csv")
	writeKey(t, key)
	if err := os.WriteFile(tokens, []byte(s.token+",admin,admin,system:masters\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := options.NewServerRunOptions()
	flags := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	for _, f := range o.Flags().FlagSets {
		flags.AddFlagSet(f)
	}
	err = flags.Parse([]string{
		"--etcd-servers=" + etcd,
		"--bind-address=" + host, "--secure-port=" + port, "--advertise-address=" + host,
		"--cert-dir=" + dir,
		"--token-auth-file=" + tokens, "--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + key, "--service-account-signing-key-file=" + key,
		"--service-cluster-ip-range=10.0.0.0/24",
		"--endpoint-reconciler-type=none", // it refuses addresses of the loopback interface
		"--allow-privileged=true",
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	completed, err := o.Complete(ctx)
	if err != nil {
		t.Fatalf("kube-apiserver: %v", err)
	}
	if faults := completed.Validate(); len(faults) > 0 {
		t.Fatalf("kube-apiserver: %v", faults)
	}
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx, completed) }()
	t.Cleanup(func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(stopTimeout):
			t.Errorf("kube-apiserver runs %v after it was stopped", stopTimeout)
		}
	})
	var last error
	waitUntil(t, "/readyz of the API server", startTimeout, func() (bool, string) {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("kube-apiserver ended: %v", err)
		default:
		}
		// The file with the certificate exists only after the start.
		if s.client, last = kubernetes.NewForConfig(s.config(rest.NoWarnings{})); last != nil {
			return false, last.Error()
		}
		last = s.client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
		return last == nil, fmt.Sprint(last)
	})
}

func writeKey(t *testing.T, file string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Starts the controllers of kube-controller-manager that the chart needs: DaemonSets, and the garbage collector, which deletes
// the pods of a deleted DaemonSet.
func (s *servers) startControllers(t *testing.T, warnings rest.WarningHandler) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	client := kubernetes.NewForConfigOrDie(s.config(warnings))
	all := informers.NewSharedInformerFactory(client, 0)
	c, err := daemon.NewDaemonSetsController(ctx, all.Apps().V1().DaemonSets(), all.Apps().V1().ControllerRevisions(),
		all.Core().V1().Pods(), all.Core().V1().Nodes(), client, flowcontrol.NewBackOff(time.Second, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	// The garbage collector reads every kind of objects, also deprecated ones: its warnings are not those of the chart.
	config := s.config(rest.NoWarnings{})
	metadataClient := metadata.NewForConfigOrDie(config)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(s.client.Discovery()))
	started := make(chan struct{})
	factory := informerfactory.NewInformerFactory(all, metadatainformer.NewSharedInformerFactory(metadataClient, 0))
	collector, err := garbagecollector.NewGarbageCollector(ctx, s.client, metadataClient, mapper,
		garbagecollector.DefaultIgnoredResources(), factory, started)
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	close(started)
	running.Go(func() { c.Run(ctx, 2) })
	running.Go(func() { collector.Run(ctx, 4, startTimeout) })
	running.Go(func() { collector.Sync(ctx, kubernetes.NewForConfigOrDie(config).Discovery(), 30*time.Second) })
}

// Evaluates a condition on objects of the API until it holds. The text says what was found last.
func waitUntil(t *testing.T, what string, timeout time.Duration, holds func() (bool, string)) {
	t.Helper()
	end := time.Now().Add(timeout)
	for {
		ok, found := holds()
		if ok {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("waited %v for %s; found %s", timeout, what, found)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
