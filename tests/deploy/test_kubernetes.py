"""The manifests of deploy/kubernetes: legal for Kubernetes, true to the service, and put together without gaps."""

from __future__ import annotations

import functools
import hashlib
import http.server
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from dockerfile import ImageConfig, configure, read_stages

from server.metrics_table import METRICS
from server.settings import ENVIRONMENT_PREFIX, Settings

ROOT = Path(__file__).parents[2]
KUBERNETES = ROOT / "deploy" / "kubernetes"
KUSTOMIZATIONS = sorted(path.parent for path in KUBERNETES.rglob("kustomization.yaml"))
TO_APPLY = [folder for folder in KUSTOMIZATIONS if folder.parent.name == "overlays" or folder.name == "base"]
VERSION = "1.37"
"""Of the schemas."""
FOREIGN = {"keda.sh/v1alpha1"}
"""What is no part of Kubernetes; docs/kubernetes.md says how it was checked."""
FETCH = KUBERNETES / "components" / "model-download" / "fetch_model.py"


def documents(path: Path) -> list[dict[str, Any]]:
    return [one for one in yaml.safe_load_all(path.read_text()) if one is not None]


def kustomization(folder: Path) -> dict[str, Any]:
    (found,) = documents(folder / "kustomization.yaml")
    return found


def resources(folder: Path) -> Iterator[dict[str, Any]]:
    """What a folder brings in, patches left out."""
    for name in kustomization(folder).get("resources", []) + kustomization(folder).get("components", []):
        path = folder / name
        yield from resources(path) if path.is_dir() else documents(path)


def name_of(resource: dict[str, Any]) -> tuple[str, str]:
    return resource["kind"], resource["metadata"]["name"]


BASE = {name_of(one): one for one in resources(KUBERNETES / "base")}


def pods(found: dict[tuple[str, str], dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {name: one["spec"]["template"] for (kind, name), one in found.items() if kind == "Deployment"}


def containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return pod["spec"].get("initContainers", []) + pod["spec"]["containers"]


@functools.cache
def rendered(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """What ``kubectl kustomize`` makes of a folder."""
    program = shutil.which("kubectl")
    if program is None:
        pytest.skip("kubectl is not installed")
    done = subprocess.run([program, "kustomize", str(folder)], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return {name_of(one): one for one in yaml.safe_load_all(done.stdout)}


def check_schema(resource: dict[str, Any]) -> None:
    validator = pytest.importorskip("kubernetes_validate", reason="pip install '.[dev]'")
    if resource["apiVersion"] not in FOREIGN:
        validator.validate(resource, VERSION, strict=True)


@pytest.mark.parametrize("folder", KUSTOMIZATIONS, ids=lambda folder: folder.name)
def test_every_file_is_named_and_every_named_file_is_there(folder: Path):
    found = kustomization(folder)
    named = [*found.get("resources", []), *found.get("components", [])]
    named += [patch["path"] for patch in found.get("patches", []) if "path" in patch]
    named += [name for one in found.get("configMapGenerator", []) for name in one["files"]]
    assert all((folder / name).exists() for name in named)
    beside = {path.name for path in folder.iterdir() if path.is_file()} - {"kustomization.yaml"}
    assert beside == {name for name in named if not name.startswith("..")}


@pytest.mark.parametrize("folder", KUSTOMIZATIONS, ids=lambda folder: folder.name)
def test_patches_are_of_something_that_is_there(folder: Path):
    there = set(BASE) | {name_of(one) for one in resources(folder)}
    for patch in kustomization(folder).get("patches", []):
        if "path" in patch:
            assert {name_of(one) for one in documents(folder / patch["path"])} <= there
        else:
            assert (patch["target"]["kind"], patch["target"]["name"]) in there


def test_the_base_is_legal():
    assert len(BASE) >= 8
    for resource in BASE.values():
        check_schema(resource)


def test_a_wrong_manifest_would_be_noticed():
    wrong = BASE["Deployment", "mimi"] | {"spec": BASE["Deployment", "mimi"]["spec"] | {"replica": 3}}
    with pytest.raises(Exception, match="replica"):
        check_schema(wrong)


@pytest.mark.parametrize("folder", TO_APPLY, ids=lambda folder: folder.name)
def test_what_is_applied_is_legal(folder: Path):
    for resource in rendered(folder).values():
        check_schema(resource)
        assert resource["metadata"].get("namespace", "mimi") == "mimi"


@pytest.mark.parametrize("folder", TO_APPLY, ids=lambda folder: folder.name)
def test_pods_are_restricted_and_chosen_by_what_names_them(folder: Path):
    found = rendered(folder)
    for pod in pods(found).values():
        outside = pod["spec"]["securityContext"]
        assert outside["runAsNonRoot"]
        assert outside["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["spec"]["automountServiceAccountToken"] is False
        for container in containers(pod):
            inside = container["securityContext"]
            assert (inside["allowPrivilegeEscalation"], inside["readOnlyRootFilesystem"]) == (False, True)
            assert inside["capabilities"] == {"drop": ["ALL"]}
            assert "memory" in container["resources"]["limits"]
            assert "cpu" not in container["resources"]["limits"]
            assert re.search(r"^mimi-server$|:\d", container["image"])
    labels = [pod["metadata"]["labels"] for pod in pods(found).values()]
    for (kind, name), one in found.items():
        spec = one.get("spec", {})
        selector = {"Service": spec.get("selector"), "NetworkPolicy": spec.get("podSelector", {}).get("matchLabels")}
        selector |= dict.fromkeys(("Deployment", "PodDisruptionBudget"), (spec.get("selector") or {}).get("matchLabels"))
        if kind in selector:
            assert sum(selector[kind].items() <= one.items() for one in labels) == 1, name


@pytest.mark.parametrize("folder", TO_APPLY, ids=lambda folder: folder.name)
def test_the_pod_says_what_the_service_understands(folder: Path):
    found = rendered(folder)
    pod = pods(found)["mimi"]
    (service,) = pod["spec"]["containers"]
    settings = found["ConfigMap", "mimi-settings"]["data"]
    names = {*settings, *(one["name"] for one in service["env"])}
    assert all(name.removeprefix(ENVIRONMENT_PREFIX).lower() in Settings.model_fields for name in names)
    Settings(**{name.removeprefix(ENVIRONMENT_PREFIX).lower(): value for name, value in settings.items()})
    config = ImageConfig()
    for instruction in read_stages((ROOT / "Dockerfile").read_text())[-1].instructions:
        if instruction.keyword not in ("RUN", "COPY"):
            configure(config, instruction)
    assert [one["containerPort"] for one in service["ports"]] == config.ports
    user = f"{pod['spec']['securityContext']['runAsUser']}:{pod['spec']['securityContext']['runAsGroup']}"
    assert user == config.user
    mounted = {one["mountPath"] for one in service["volumeMounts"]}
    assert "/tmp" in mounted
    model = next((one["value"] for one in service["env"] if one["name"] == "MIMI_MODEL"), None)
    assert model is None or str(Path(model).parent) in mounted
    pause_s = int(service["lifecycle"]["preStop"]["exec"]["command"][1])
    stop_s = (int(settings["MIMI_DRAIN_TIMEOUT_MS"]) + int(settings["MIMI_STOP_TIMEOUT_MS"])) / 1000
    assert pause_s + stop_s < pod["spec"]["terminationGracePeriodSeconds"]
    spool_bytes = Settings.model_fields["max_spool_bytes"].default
    (tmp,) = (one for one in pod["spec"]["volumes"] if one["name"] == "tmp")
    assert int(tmp["emptyDir"]["sizeLimit"].removesuffix("Mi")) << 20 > spool_bytes


def test_only_production_has_a_store_a_way_in_and_scaling():
    small, production = rendered(KUBERNETES / "overlays" / "small"), rendered(KUBERNETES / "overlays" / "production")
    assert set(small) == set(BASE)
    added = {kind for kind, _ in set(production) - set(small)}
    assert added == {"Deployment", "Service", "NetworkPolicy", "PersistentVolumeClaim", "Ingress", "ScaledObject"}
    store = production["ConfigMap", "mimi-settings"]["data"]["MIMI_SNAPSHOT_STORE"]
    (port,) = production["Service", "mimi-redis"]["spec"]["ports"]
    assert store == f"redis://mimi-redis:{port['port']}/0"
    assert "replicas" not in production["Deployment", "mimi"]["spec"]


def test_scaling_asks_for_metrics_that_there_are_and_never_for_the_processor():
    (scaled,) = documents(KUBERNETES / "components" / "autoscaling" / "scaledobject.yaml")
    for trigger in scaled["spec"]["triggers"]:
        assert trigger["type"] == "prometheus"
        named = set(re.findall(r"mimi_\w+", trigger["metadata"]["query"]))
        assert named
        assert named <= set(METRICS)
    target = scaled["spec"]["scaleTargetRef"]["name"]
    assert ("Deployment", target) in BASE


def test_streams_may_be_silent_for_an_hour():
    (ingress,) = documents(KUBERNETES / "components" / "ingress" / "ingress.yaml")
    notes = {name.rpartition("/")[2]: value for name, value in ingress["metadata"]["annotations"].items()}
    assert (notes["proxy-read-timeout"], notes["proxy-send-timeout"]) == ("3600", "3600")
    assert "http_503" in notes["proxy-next-upstream"]
    assert int(notes["proxy-body-size"].removesuffix("m")) << 20 == Settings.model_fields["max_body_bytes"].default


class Files(http.server.SimpleHTTPRequestHandler):
    """A server of models that says nothing."""

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize(
    ("address", "sha256", "says"),
    [
        ("http://127.0.0.1:{port}/model", None, ""),
        ("http://127.0.0.1:{port}/model", "0" * 64, "expected 0000"),
        ("http://127.0.0.1:{port}/none", None, "404"),
        ("file:///etc/passwd", None, "expected http"),
    ],
)
def test_a_model_is_fetched_whole_and_right_or_not_at_all(tmp_path: Path, rng, address: str, sha256: str | None, says: str):
    served, target = tmp_path / "served", tmp_path / "models"
    served.mkdir()
    target.mkdir()
    content = rng.bytes(3_000_000)
    (served / "model").write_bytes(content)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Files, directory=served))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = address.format(port=server.server_address[1])
        variables = {"MODEL_URL": url, "MODEL_SHA256": sha256 or hashlib.sha256(content).hexdigest()}
        command = [sys.executable, str(FETCH), str(target / "mimi.gguf")]
        done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, timeout=60, check=False)
    finally:
        server.shutdown()
        server.server_close()
    assert says in done.stderr
    assert (done.returncode == 0) == (not says)
    assert [path.read_bytes() for path in target.iterdir()] == ([] if says else [content])
