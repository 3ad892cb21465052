"""`vivace bench report` and `compare`, through the command line, and the HTML page in a headless Chromium."""

import json
import random
import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

from conftest import BINARY

VOID = {"meta", "input", "br"}


def bench(*args):
    return subprocess.run([BINARY, "bench", *map(str, args)], capture_output=True, text=True, timeout=60)


def result(path, seed, ttft=0.06, tpot=0.012, requests=120, tokens=20, concurrency=8, **more):
    """A result as `vllm bench serve --save-result --save-detailed` leaves one, of a closed loop."""
    draw = random.Random(seed)
    free, ttfts, itls, starts = [0.0] * concurrency, [], [], []
    for _ in range(requests):
        place = free.index(min(free))
        starts.append(free[place])
        ttfts.append(max(0.001, draw.gauss(ttft, ttft / 5)))
        itls.append([max(0.0005, draw.gauss(tpot, tpot / 5)) * (6 if draw.random() < 0.01 else 1)
                     for _ in range(tokens - 1)])
        free[place] += ttfts[-1] + sum(itls[-1])

    def stats(name, values):
        ordered = sorted(v * 1000 for v in values)
        mean = sum(ordered) / len(ordered)
        return {f"mean_{name}_ms": mean, f"median_{name}_ms": ordered[len(ordered) // 2], f"std_{name}_ms": 1.0,
                f"p90_{name}_ms": ordered[int(len(ordered) * .9)], f"p99_{name}_ms": ordered[int(len(ordered) * .99)]}

    duration = max(free)
    report = {
        "date": "20261130-120000", "backend": "openai", "label": f"c={concurrency}", "model_id": "a model",
        "num_prompts": requests, "request_rate": "inf", "burstiness": 1.0, "max_concurrency": concurrency,
        "duration": duration, "completed": requests, "failed": 0, "total_input_tokens": 100 * requests,
        "total_output_tokens": tokens * requests, "request_throughput": requests / duration,
        "output_throughput": tokens * requests / duration, "total_token_throughput": (100 + tokens) * requests / duration,
        "input_lens": [100] * requests, "output_lens": [tokens] * requests, "ttfts": ttfts, "itls": itls,
        "start_times": starts, "errors": [""] * requests,
        **stats("ttft", ttfts), **stats("tpot", [sum(i) / len(i) for i in itls]),
        **stats("itl", [g for i in itls for g in i]), **stats("e2el", [t + sum(i) for t, i in zip(ttfts, itls)]), **more}
    path.write_text(json.dumps(report))
    return path


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    return [result(folder / f"c{c}.json", c, tpot=0.008 + 0.0008 * c, requests=12 * c, concurrency=c)
            for c in (1, 4, 10, 16)]


@pytest.fixture(scope="module")
def page(results, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    done = bench("report", *results, "--html", path)
    assert done.returncode == 0, done.stderr
    return path


class Elements(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.names, self.attributes = [], set(), []

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.names.add(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_a_table_of_saved_results(results):
    done = bench("report", *results)
    assert done.returncode == 0
    assert re.search(r"^c=4 +48 +0 ", done.stdout, re.M), done.stdout
    one = bench("report", results[0], "--compat", "guidellm").stdout
    assert "Serving Benchmark Result" in one and "inter_token_latency_ms.mean" in one


def test_results_become_our_json_and_come_back_the_same(results, tmp_path):
    first = bench("report", results[1], "--json").stdout
    saved = tmp_path / "ours.json"
    saved.write_text(first)
    assert bench("report", saved, "--json").stdout == first
    theirs, ours = json.loads(results[1].read_text()), json.loads(first)
    for name in ("mean_ttft_ms", "p99_itl_ms", "duration", "completed", "output_throughput"):
        assert ours[name] == pytest.approx(theirs[name]), name


def test_csv_has_a_row_for_each_run(results, tmp_path):
    path = tmp_path / "runs.csv"
    assert bench("report", *results, "--csv", path).returncode == 0
    lines = path.read_text().splitlines()
    assert len(lines) == 5 and "p99_ttft_ms" in lines[0]


def test_runs_of_files_that_are_called_alike_have_the_files_names(tmp_path):
    (tmp_path / "other").mkdir()
    files = [result(tmp_path / name, 1) for name in ("before.json", "after.json", "other/after.json")]
    table = bench("report", *files[:2]).stdout
    assert "before c=8" in table and "after c=8" in table
    labels = [run["label"] for run in json.loads(bench("report", *files, "--json").stdout)["runs"]]
    assert labels == ["before c=8", f"{files[1]} c=8", f"{files[2]} c=8"]


def test_runs_of_several_servers_keep_their_ports_and_loads(tmp_path):
    files = [result(tmp_path / f"{port}-{c}.json", c, requests=20, concurrency=c, base_url=f"http://127.0.0.1:{port}",
                    endpoint="/v1/completions", environment={"server_model_owner": "vivace bench simulate"})
             for port in (8001, 8002) for c in (4, 64)]
    html = tmp_path / "both.html"
    table = bench("report", *files, "--html", html).stdout
    page = html.read_text()
    for port in (8001, 8002):
        for c in (4, 64):
            assert re.search(rf"^vivace\S* .*:{port} c={c}  ", table, re.M), table
            assert len(re.findall(rf"vivace[^<>]*:{port} c={c}[ :<]", page)) >= 4  # summary, legends, heading, titles


def test_reports_do_not_overwrite_each_other(results, tmp_path):
    done = bench("report", results[0], "--html", tmp_path / "a", "--csv", tmp_path / "a")
    assert done.returncode == 1 and "another output of this command goes there" in done.stderr


def test_compare_finds_what_differs_and_nothing_else(tmp_path):
    before = result(tmp_path / "before.json", 1, requests=200)
    same = result(tmp_path / "same.json", 2, requests=200)
    after = result(tmp_path / "after.json", 3, requests=200, ttft=0.03)
    done = bench("compare", before, same, after, "--json")
    assert done.returncode == 0, done.stderr
    figures = {f["name"]: f["against"] for f in json.loads(done.stdout)["runs"][0]["figures"]}
    assert figures["mean TTFT"][0]["verdict"] == "no difference"
    assert figures["mean TTFT"][1]["verdict"] == "better"
    assert figures["mean TTFT"][1]["ratio"] == pytest.approx(0.5, abs=0.06)
    assert figures["mean TPOT"][1]["verdict"] == "no difference"
    text = bench("compare", before, after).stdout
    assert re.search(r"mean TTFT .* better", text) and "repeat what matters" in text


def test_without_details_there_are_ratios_only(tmp_path):
    a, b = result(tmp_path / "a.json", 1), result(tmp_path / "b.json", 2)
    plain = json.loads(b.read_text())
    for name in ("ttfts", "itls", "input_lens", "output_lens", "start_times", "errors"):
        del plain[name]
    b.write_text(json.dumps(plain))
    done = bench("compare", a, b)
    assert done.returncode == 0
    assert "--save-detailed" in done.stdout and "no interval" in done.stdout


@pytest.mark.parametrize("content, why", [
    ("", "not JSON: it is empty"), ("{", "not JSON"), ("[]", "\"runs\" is not a list"), ("{\"a\": 1}", "not a result of"),
    ("{\"completed\": [], \"duration\": 1}", "\"completed\" is not a number")])
def test_what_is_no_result_is_refused(content, why, tmp_path):
    bad = tmp_path / "bad.json"
    bad.write_text(content)
    for verb in (("report",), ("compare", bad)):
        done = bench(*verb, bad)
        assert done.returncode == 1 and why in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


def test_wrong_command_lines(results, tmp_path):
    assert bench("compare", results[0]).returncode == 2
    assert bench("report").returncode == 2
    assert "--confidence is '120'" in bench("compare", *results[:2], "--confidence", "120").stderr
    missing = bench("report", tmp_path / "none.json")
    assert missing.returncode == 1 and "none.json" in missing.stderr
    assert "there are vllm" in bench("report", results[0], "--compat", "wrk").stderr
    folder = bench("report", results[0], "--html", tmp_path)
    assert folder.returncode == 1 and str(tmp_path) in folder.stderr


def test_the_page_is_whole_and_needs_nothing(page):
    parser = Elements()
    parser.feed(page.read_text())
    assert parser.open == []
    assert "script" not in parser.names and "link" not in parser.names and "img" not in parser.names
    links = [value for name, value in parser.attributes if name in ("href", "src")]
    assert links and all(link.startswith("#") for link in links)


def test_texts_of_strangers_stay_text(tmp_path):
    evil = "</title><script>document.title='bad'</script><img src=x onerror=alert(1)>"
    path = result(tmp_path / "evil.json", 1, model_id=evil, label=evil, requests=20)
    html = tmp_path / "evil.html"
    done = bench("report", path, "--html", html)
    assert done.returncode == 0
    parser = Elements()
    parser.feed(html.read_text())
    assert "script" not in parser.names and "img" not in parser.names


# In a browser.

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

CHROMIUM = shutil.which("chromium")
DRIVER = shutil.which("chromedriver")


@pytest.fixture(scope="module")
def browser():
    if not (CHROMIUM and DRIVER):
        pytest.skip("chromium and chromedriver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,1000",
                 "--disable-background-networking", "--disable-component-update", "--no-first-run"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_page_load_timeout(60)
    yield driver
    driver.quit()


def set_width(browser, width):
    # A window has a least width; the page in it has none.
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                            {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600})


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_fits_and_reads(browser, page, width, theme):
    set_width(browser, width)
    browser.get(page.as_uri())
    browser.find_element(By.CSS_SELECTOR, f"label[for={theme}]").click()
    assert browser.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
    browser.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")
    assert browser.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
    page_color, ink = browser.execute_script(
        "const s = getComputedStyle(document.body); return [s.backgroundColor, s.color]")
    light = sum(map(int, re.findall(r"\d+", page_color)[:3])) > sum(map(int, re.findall(r"\d+", ink)[:3]))
    assert light == (theme == "light")
    # No label of a plot covers another.
    covered = browser.execute_script("""
        let count = 0;
        for (const plot of document.querySelectorAll('.plot:not(.waterfall)')) {
          const boxes = [...plot.querySelectorAll('text')].map(t => t.getBoundingClientRect());
          for (let i = 0; i < boxes.length; ++i) for (let j = 0; j < i; ++j) {
            const a = boxes[i], b = boxes[j], by = 3;  // boxes of fonts are taller than their letters
            if (a.left + by < b.right && b.left + by < a.right && a.top + by < b.bottom && b.top + by < a.bottom) ++count;
          }
        }
        return count""")
    assert covered == 0
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_the_page_by_keyboard(browser, page):
    set_width(browser, 1280)
    browser.get(page.as_uri())
    body = browser.find_element(By.TAG_NAME, "body")
    body.send_keys(Keys.TAB)
    assert browser.switch_to.active_element.get_attribute("id") == "auto"
    browser.switch_to.active_element.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert browser.execute_script("return getComputedStyle(document.documentElement).colorScheme") == "dark"
    summary = browser.find_elements(By.CSS_SELECTOR, "details:not([open]) summary")[0]
    summary.send_keys(Keys.ENTER)
    assert summary.find_element(By.XPATH, "..").get_attribute("open") is not None
