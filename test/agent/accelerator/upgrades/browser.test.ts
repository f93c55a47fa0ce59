// A real browser: its WebSocket over HTTP/1.1 and over HTTP/2, beside the page that opened it, with ten thousand messages each way and a new state in between.

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { WebSocketServer, type WebSocket } from "ws";
import { tempDir } from "../../../support/temp-dir.ts";
import { until } from "../../../support/until.ts";
import { host, stateOf } from "../edge.ts";
import { openSecure } from "../secure-stage.ts";

const browser = ["chromium", "chromium-browser", "google-chrome"].find((name) => {
  try {
    execFileSync("which", [name], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
});
const half = 5_000;

/** Sends the second half when the first has come back and the state has changed, then tells what it saw. */
const page = `<!doctype html><title>chat</title><script>
  const socket = new WebSocket(location.origin.replace(/^http/, "ws") + "/chat");
  let [sent, came, wrong] = [0, 0, 0];
  const send = () => { for (let n = 0; n < ${half}; n++) socket.send("message " + sent++); };
  const tell = (path) => fetch(path, { method: "POST" });
  socket.onopen = send;
  socket.onerror = () => tell("/told?failed");
  socket.onmessage = async ({ data }) => {
    if (data !== "message " + came++) wrong++;
    if (came === ${half}) { await tell("/half"); send(); }
    if (came === ${2 * half}) socket.close(1000);
  };
  socket.onclose = ({ code, wasClean }) => {
    const [{ nextHopProtocol }] = performance.getEntriesByType("navigation");
    tell("/told?" + [came, wrong, code, wasClean, nextHopProtocol].join());
  };
</script>`;

async function openScene() {
  const told: string[] = [];
  const onHalf: (() => void)[] = [];
  const server = createServer((request: IncomingMessage, response) => {
    const { url = "" } = request;
    if (url === "/half") for (const act of onHalf) act();
    if (url.startsWith("/told?")) told.push(url.slice("/told?".length));
    response.writeHead(200, { "content-type": "text/html", "cache-control": "no-store" });
    response.end(url === "/" ? page : "");
  });
  const channels = new WebSocketServer({ server });
  channels.on("connection", (channel: WebSocket) => {
    channel.on("message", (bytes, isBinary) => channel.send(bytes, { binary: isBinary }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo; // It listens.
  const site = { backend: { urls: [`http://127.0.0.1:${port}`], retries: 0 } };
  const secure = await openSecure({ site });
  onHalf.push(() => secure.edge.publish(stateOf(2, site)));
  return {
    ...secure,
    told,
    [Symbol.asyncDispose]: async () => {
      await secure[Symbol.asyncDispose]();
      server.closeAllConnections();
      server.close();
    },
  };
}

async function browse(program: string, url: string, seen: () => boolean): Promise<void> {
  using profile = tempDir();
  const args = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--ignore-certificate-errors",
    `--host-resolver-rules=MAP ${host} 127.0.0.1`,
    `--user-data-dir=${profile.path}`,
    "--remote-debugging-port=0", // Without it a headless browser ends with the page's loading.
    url,
  ];
  const child = spawn(program, args, { stdio: "ignore", detached: true });
  const ended = once(child, "exit");
  try {
    await until("the browser to tell", seen, 90_000);
  } finally {
    if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    await ended;
  }
}

test.skipIf(browser === undefined).each([
  ["HTTP/1.1", "http", "http/1.1"],
  ["HTTP/2", "https", "h2"],
])(
  "over %s",
  async (_what, scheme, protocol) => {
    await using s = await openScene();
    const port = scheme === "http" ? s.edge.port : s.port;
    await browse(browser ?? "", `${scheme}://${host}:${port}/`, () => s.told.length > 0);
    expect(s.told).toEqual([`${2 * half},0,1000,true,${protocol}`]);
    await until("the record", () => s.edge.records.some(({ uri_path }) => uri_path === "/chat"));
    const chat = s.edge.records.find(({ uri_path }) => uri_path === "/chat");
    expect(chat).toMatchObject({ response_status: 101, request_method: "GET", cache: "pass" });
    const opened = s.edge.records.find(({ uri_path }) => uri_path === "/");
    // Over HTTP/2 it is a stream of the connection that the page came by.
    expect(chat?.connection === opened?.connection).toBe(protocol === "h2");
    expect(chat?.bytes_sent).toBeGreaterThan(2 * half * "message 1".length);
  },
  120_000,
);
