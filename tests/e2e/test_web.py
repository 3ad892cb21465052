"""The page at /, as a person uses it: in a headless Chromium, by mouse and by keyboard."""

import json
import shutil

import pytest
import requests

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

CHROMIUM = shutil.which("chromium")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="chromium and chromedriver are not installed")

WAIT_S = 60


@pytest.fixture(scope="module")
def browser():
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1000,900",
                 "--disable-background-networking", "--disable-component-update", "--no-first-run"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_page_load_timeout(WAIT_S)
    yield driver
    driver.quit()


@pytest.fixture
def page(browser, smol):
    browser.get(smol.base + "/")
    wait(browser, lambda: text(browser, "#model") != "")
    yield browser
    # Errors of scripts, and anything the page wanted from elsewhere, end up here.
    severe = [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert [message for message in severe if "/v1/chat/completions" not in message] == []


def wait(browser, met):
    return WebDriverWait(browser, WAIT_S, poll_frequency=0.05).until(lambda _: met())


def one(browser, selector):
    return browser.find_element(By.CSS_SELECTOR, selector)


def text(browser, selector):
    return one(browser, selector).text


def say(browser, words):
    one(browser, "#input").send_keys(words, Keys.ENTER)


def set_field(browser, name, value):
    browser.execute_script("document.getElementById('settings').open = true")
    field = one(browser, f"#{name}")
    field.clear()
    field.send_keys(value)


def answered(browser):
    return wait(browser, lambda: one(browser, "#send").is_displayed() and text(browser, "#status"))


def last_answer(browser):
    # In one go: the element is made anew while an answer comes.
    return browser.execute_script(
        "return [...document.querySelectorAll('.message.assistant > div:nth-of-type(2)')].at(-1)?.innerText ?? ''")


def test_an_answer_is_what_the_api_says(page, smol):
    set_field(page, "temperature", "0")
    set_field(page, "max_tokens", "12")
    say(page, "Hi")
    answered(page)
    whole = requests.post(smol.base + "/v1/chat/completions", timeout=60, json={
        "messages": [{"role": "user", "content": "Hi"}], "temperature": 0, "max_tokens": 12}).json()
    assert last_answer(page).strip() == whole["choices"][0]["message"]["content"].strip()
    assert f"31 tokens in, {whole['usage']['completion_tokens']} out" in text(page, "#status")


def test_escape_stops_and_the_message_can_be_edited(page):
    set_field(page, "max_tokens", "4000")
    set_field(page, "schema", json.dumps({"type": "string", "minLength": 3000}))  # it does not end by itself
    say(page, "Count from one to a thousand in words.")
    wait(page, lambda: last_answer(page) != "")
    page.switch_to.active_element.send_keys(Keys.ESCAPE)
    wait(page, lambda: text(page, "#status") == "stopped")
    one(page, ".message.user button").click()
    assert one(page, "#input").get_attribute("value") == "Count from one to a thousand in words."
    assert page.find_elements(By.CSS_SELECTOR, ".message") == []


def test_markup_in_a_message_is_text(page):
    set_field(page, "max_tokens", "1")
    say(page, "<img src=x onerror=document.title='bad'><b>bold</b>")
    answered(page)
    assert "<b>bold</b>" in text(page, ".message.user")
    assert page.find_elements(By.CSS_SELECTOR, "#log img, #log b") == []
    assert page.title == "Vivace"


def test_what_is_refused_is_said(page):
    set_field(page, "temperature", "-1")
    say(page, "Hi")
    wait(page, lambda: "temperature" in text(page, "#notice"))
    set_field(page, "temperature", "0")
    set_field(page, "schema", "{")
    say(page, "Hi")
    wait(page, lambda: "not JSON" in text(page, "#notice"))


def test_a_schema_shapes_the_answer(page):
    set_field(page, "max_tokens", "60")
    set_field(page, "schema", json.dumps({
        "type": "object", "properties": {"city": {"enum": ["Bern", "Rome"]}}, "required": ["city"], "additionalProperties": False}))
    say(page, "Name a city.")
    answered(page)
    assert json.loads(last_answer(page))["city"] in ("Bern", "Rome")


def test_the_engine_view_shows_what_runs(page, smol):
    requests.post(smol.base + "/v1/completions", json={"prompt": "Hi", "max_tokens": 4}, timeout=60)
    one(page, "#tab-chat").send_keys(Keys.ARROW_RIGHT)
    assert one(page, "#tab-engine").get_attribute("aria-selected") == "true"
    wait(page, lambda: "Output tokens/s" in text(page, "#gauges"))
    wait(page, lambda: len(page.find_elements(By.CSS_SELECTOR, "#charts svg")) == 4)
    wait(page, lambda: page.find_elements(By.CSS_SELECTOR, "#requests button"))
    one(page, "#requests button").click()
    wait(page, lambda: len(page.find_elements(By.CSS_SELECTOR, "#timeline li")) >= 2)


@pytest.mark.parametrize("width", [360, 1000])
@pytest.mark.parametrize("theme", ["dark", "light"])
def test_nothing_is_wider_than_the_window(page, width, theme):
    page.set_window_size(width, 800)
    try:
        page.execute_script("document.documentElement.dataset.theme = arguments[0]", theme)
        for tab in ("chat", "engine"):
            one(page, f"#tab-{tab}").click()
            assert page.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
    finally:
        page.set_window_size(1000, 900)
