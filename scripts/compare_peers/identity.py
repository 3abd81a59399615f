"""Keys and X.509-SVIDs for one comparison, made with the openssl command. They live in memory only (memfd): nothing is
written to a disk, so nothing can be left on one."""
import os

from . import processes

TRUST_DOMAIN = "fsbl.test"
ROLES = ("client", "server")

CONFIG = """
[req]
distinguished_name = subject
prompt = no
[subject]
O = fsbl compare-peers
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
subjectAltName = URI:spiffe://{domain}
[client]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth, clientAuth
subjectAltName = URI:spiffe://{domain}/worker/client
[server]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth, clientAuth
subjectAltName = URI:spiffe://{domain}/worker/server
"""


def spiffe_id(role):
    return f"spiffe://{TRUST_DOMAIN}/worker/{role}"


class MemoryFile:
    """A file without a place; `path` names it for a child that is given its descriptor (`keep`)."""

    def __init__(self, name):
        self.fd = os.memfd_create(name, os.MFD_CLOEXEC)
        os.fchmod(self.fd, 0o600)
        self.path = f"/proc/self/fd/{self.fd}"

    def write(self, text):
        os.pwrite(self.fd, text.encode(), 0)

    def read(self):
        return os.pread(self.fd, os.fstat(self.fd).st_size, 0).decode()

    def close(self):
        os.close(self.fd)


class Identities:
    """A CA and one SVID for each side: P-256, signed by the CA directly, good for a day."""

    def __init__(self):
        self.files = {}
        try:
            config = self._file("config")
            config.write(CONFIG.format(domain=TRUST_DOMAIN))
            for name in ("authority", *ROLES):
                key, certificate = self._file(f"{name}.key"), self._file(f"{name}.crt")
                self._openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key.path)
                request = ["req", "-new", "-sha256", "-config", config.path, "-key", key.path]
                if name == "authority":
                    self._openssl(*request, "-x509", "-days", "1", "-extensions", name, "-out", certificate.path)
                    continue
                asked = self._file(f"{name}.csr")
                self._openssl(*request, "-out", asked.path)
                self._openssl("x509", "-req", "-sha256", "-days", "1", "-in", asked.path, "-out", certificate.path,
                              "-CA", self.files["authority.crt"].path, "-CAkey", self.files["authority.key"].path,
                              "-set_serial", str(2 + ROLES.index(name)), "-extfile", config.path, "-extensions", name)
        except BaseException:
            self.close()
            raise

    def _file(self, name):
        self.files[name] = MemoryFile(name)
        return self.files[name]

    def _openssl(self, *words):
        processes.run(["openssl", *words], keep=self.descriptors(), timeout=30)

    def descriptors(self):
        """What a child that reads these files must inherit."""
        return tuple(file.fd for file in self.files.values())

    def key(self, role):
        return self.files[f"{role}.key"].path

    def certificate(self, role):
        return self.files[f"{role}.crt"].path

    def bundle(self):
        return self.files["authority.crt"].path

    def secrets(self, role):
        """What a worker of session tls is given (harness/transport/transport.h, worker_secrets)."""
        peer = ROLES[1 - ROLES.index(role)]
        return {"key_pem": self.files[f"{role}.key"].read(), "chain_pem": self.files[f"{role}.crt"].read(),
                "bundle_pem": self.files["authority.crt"].read(), "trust_domain": TRUST_DOMAIN,
                "peer_id": spiffe_id(peer)}

    def close(self):
        for file in self.files.values():
            file.close()
        self.files = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
