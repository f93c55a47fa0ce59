// The watch room: asks for a file, a picture and the time, and shows what the edge says it did (Cache-Status, RFC 9211).
// Each request carries a new utm_visit: the browser's own cache sees a new address, while the edge leaves utm_* out of its key.

const askTimeoutMs = 10_000;
const logRowsMax = 12;
const instruments = new Map([...document.querySelectorAll("[data-instrument]")].map((element) => [element.dataset.instrument, element]));
const again = document.querySelector("#again");
const another = document.querySelector("#another");
const log = document.querySelector("#log tbody");
const said = document.querySelector("#said");
const picture = document.querySelector("#picture");
const visitor = Date.now().toString(36);
let seed = 1 + (Math.floor(Date.now() / 60_000) % 900);
let visits = 0;

/** What the cache nearest to the visitor says: the last member of the list. */
function readCacheStatus(header) {
  const members = header.match(/(?:"(?:[^"\\]|\\.)*"|[^,"])+/g) ?? [];
  const [cache = "", ...parameters] = (members.at(-1) ?? "").split(";").map((part) => part.trim());
  const values = new Map(
    parameters.map((parameter) => {
      const equals = parameter.indexOf("=");
      return equals < 0 ? [parameter, "true"] : [parameter.slice(0, equals), parameter.slice(equals + 1)];
    }),
  );
  return { cache, values };
}

/** The word for an answer, and the sentence under it. */
function judge(response) {
  const decision = response.headers.get("x-accel-decision");
  if (decision !== null) return { word: "refused", kind: "bad", why: `The edge blocked this visitor: decision ${decision}.` };
  if (!response.ok) return { word: String(response.status), kind: "bad", why: "The answer was an error." };
  const header = response.headers.get("cache-status");
  if (header === null) return { word: "no cache", kind: "none", why: "No Cache-Status header: you are not looking through the edge." };
  const { values } = readCacheStatus(header);
  if (values.has("hit")) return { word: "hit", kind: "hit", why: "Answered at the edge. The origin was not asked." };
  const forward = values.get("fwd");
  if (forward === "stale") return { word: "renewed", kind: "miss", why: "The copy was too old: the origin was asked whether it still holds." };
  if (forward?.includes("miss") === true) {
    return { word: "miss", kind: "miss", why: values.has("stored") ? "Not at the edge yet: fetched from the origin, and kept." : "Read from where it lies; the next one is a hit." };
  }
  return { word: "passed", kind: "pass", why: "Not kept: the request went through to the origin." };
}

async function ask(name, url) {
  const began = performance.now();
  try {
    const response = await fetch(url, { cache: name === "clock" ? "no-store" : "default", signal: AbortSignal.timeout(askTimeoutMs) });
    const body = await response.blob();
    const content = response.ok && name !== "picture" ? JSON.parse(await body.text()) : undefined;
    return { name, url, response, body, content, ms: performance.now() - began, ...judge(response) };
  } catch (error) {
    return { name, url, ms: performance.now() - began, word: "no answer", kind: "bad", why: error instanceof Error ? error.message : String(error) };
  }
}

function show({ name, response, body, content, ms, word, kind, why }) {
  const element = instruments.get(name);
  const set = (field, value) => {
    element.querySelector(`[data-field="${field}"]`).textContent = value;
  };
  element.dataset.kind = kind;
  set("word", word);
  set("why", why);
  set("cache-status", response?.headers.get("cache-status") ?? "none");
  set("age", response?.headers.has("age") ? `${response.headers.get("age")} s` : "none");
  set("origin", response?.headers.get("x-origin-request") ?? "not asked");
  set("ms", `${ms.toFixed(ms < 10 ? 1 : 0)} ms`);
  if (response?.ok !== true) return;
  if (name === "picture") {
    URL.revokeObjectURL(picture.src);
    picture.src = URL.createObjectURL(body);
    picture.alt = `Card number ${seed}: an invented lighthouse at dusk, drawn by the origin from that number.`;
  } else {
    set("content", name === "clock" ? new Date(content.time).toISOString().slice(11, 23) : `${content.lights.length} lights listed`);
  }
}

function enter({ name, url, response, ms, word, kind }) {
  const row = document.createElement("tr");
  const cells = [new Date().toTimeString().slice(0, 8), url.replace(/[?&]utm_visit=[^&]*/, ""), word, response?.headers.get("cache-status") ?? "none", `${ms.toFixed(0)} ms`];
  for (const [index, value] of cells.entries()) {
    const cell = document.createElement("td");
    cell.textContent = value;
    if (index === 2) cell.dataset.kind = kind;
    row.append(cell);
  }
  row.title = name;
  log.prepend(row);
  while (log.rows.length > logRowsMax) log.deleteRow(-1);
}

async function round(names) {
  again.disabled = another.disabled = true;
  visits++;
  const visit = `utm_visit=${visitor}-${visits}`;
  const urls = { file: `/data/lights.json?${visit}`, picture: `/generated/card.svg?seed=${seed}&${visit}`, clock: "/api/clock" };
  const answers = await Promise.all(names.map((name) => ask(name, urls[name])));
  try {
    for (const answer of answers) {
      enter(answer);
      show(answer);
    }
    said.textContent = answers.map(({ name, word }) => `${name}: ${word}`).join(", ");
  } finally {
    again.disabled = another.disabled = false;
  }
}

again.addEventListener("click", () => void round(["file", "picture", "clock"]));
another.addEventListener("click", () => {
  seed++;
  void round(["picture"]);
});
void round(["file", "picture", "clock"]);
