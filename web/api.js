// Calls to the server this page came from. Errors are Error objects whose message a person can read.

let key = sessionStorage.getItem("key") ?? "";
export function setKey(value) {
  key = value;
  sessionStorage.setItem("key", value);
}
export const getKey = () => key;

const headers = () => (key ? { authorization: `Bearer ${key}` } : {});

async function checked(response) {
  if (response.ok) return response;
  let message = `the server answered ${response.status}`;
  try {
    message = (await response.json()).error.message;
  } catch {
    // no JSON: the status has to do
  }
  if (response.status === 401) message += " Give the key under Settings.";
  throw new Error(message);
}

export async function getText(path) {
  return (await checked(await fetch(path, { headers: headers() }))).text();
}
export async function getJson(path) {
  return (await checked(await fetch(path, { headers: headers() }))).json();
}

// Yields the JSON of each event of a streamed answer until [DONE].
export async function* stream(path, body, signal) {
  const response = await checked(await fetch(path, {
    method: "POST",
    headers: { ...headers(), "content-type": "application/json" },
    body: JSON.stringify(body),
    signal,
  }));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) throw new Error("the answer broke off; the server may have stopped");
    rest += value;
    const events = rest.split("\n\n");
    rest = events.pop();
    for (const event of events) {
      if (!event.startsWith("data: ")) continue; // a comment that keeps the connection
      const data = event.slice(6);
      if (data === "[DONE]") return;
      const parsed = JSON.parse(data);
      if (parsed.error) throw new Error(parsed.error.message);
      yield parsed;
    }
  }
}
