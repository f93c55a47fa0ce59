// What our own log says of requests: who, what, how it ended; and that no secret comes into it whatever is sent and however it fails.

import { once } from "node:events";
import { connect } from "node:net";
import pino from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { listenHttp } from "../../../src/base/http-listener.ts";
import { readFields } from "../../../src/central/api/http/request-fields.ts";
import { until } from "../../support/until.ts";
import { basic, form, formHeaders } from "../../support/wheels.ts";
import { member, openApi, type Api } from "./api-harness.ts";

let api: Api;
let token: string;
const said: string[] = [];
beforeAll(async () => {
  api = await openApi({}, pino({ level: "trace" }, { write: (line: string) => said.push(line) }));
  token = await api.trial("logged");
});
afterAll(async () => api[Symbol.asyncDispose]());

type Line = Readonly<Record<string, unknown>>;

function lines(): readonly Line[] {
  return said.map((line) => Object(JSON.parse(line)) as Line);
}

test("a line a request: route, status, who, from where, how much", async () => {
  const path = "/domain/nowhere.example.com/";
  const reply = await api.call("GET", `${path}?format=json`, {
    token,
    headers: { "x-forwarded-for": "192.0.2.44" },
  });
  const line = lines().find(({ request_id: id }) => id === reply.headers["x-request-id"]);
  expect(line).toMatchObject({
    msg: "request",
    method: "GET",
    path: `/presentation-api/v1${path}`,
    route: "/domain/:name/",
    status: 404,
    address: "192.0.2.44",
    user_id: 1,
    customer_id: 1,
    bytes_out: Number(reply.headers["content-length"]),
  });
  expect(line).not.toHaveProperty("aborted");
});

test("a request that its client gives up has no status", async () => {
  const socket = connect(api.port, "127.0.0.1");
  await once(socket, "connect");
  socket.write(
    `POST /presentation-api/v1/deployment-site/ HTTP/1.1\r\nhost: x\r\nauthorization: Token ${token}\r\ncontent-length: 100\r\n\r\n{"ta`,
  );
  socket.end();
  socket.destroy();
  await until("it is told", () => lines().some(({ aborted }) => aborted === true));
  expect(lines().find(({ aborted }) => aborted === true)).toMatchObject({
    method: "POST",
    status: null,
    bytes_in: 100,
  });
});

const canary = "cAnArY0123456789abcdefXyZ";

test("no secret is in it, whatever is sent and however it fails", async () => {
  const body = {
    username: "logged",
    password: canary,
    private_key: `-----BEGIN PRIVATE KEY-----${canary}`,
    certificate: canary,
    chat_hook_url: `https://chat.example.com/${canary}`,
    secret16: canary,
  };
  const paths = [
    "/trial/",
    "/user-profile/1/",
    "/deployment-site/",
    "/symenckeys/",
    "/upload/certificates/0123456789abcdef/",
    "/upload/accel_pack/1.0/",
    "/monitor-notification-channel/chat/",
    "/tokens/start-recovery/",
    "/no-such-path/",
  ];
  const headers = { "x-api-key": canary, cookie: `session=${canary}`, "idempotency-key": canary };
  const requests = [
    { token, body, headers },
    { token: canary, body, headers },
    { token, raw: `{"password": "${canary}"`, headers },
    {
      raw: form([{ name: canary, content: canary }]),
      headers: { ...formHeaders, ...basic("logged", canary) },
    },
  ];
  for (const path of paths)
    for (const method of ["POST", "PUT", "PATCH"])
      for (const request of requests)
        for (const query of ["", `?token=${canary}`])
          await api.call(method, `${path}${query}`, request);
  // A failure in the middle: the store is gone for one request.
  api.gate = async () => Promise.reject(new Error("the disk is full"));
  const failed = await api.call("POST", "/trial/", { body, headers });
  api.gate = undefined;
  expect(failed.status).toBe(400);
  expect(said.length).toBeGreaterThan(90);
  const all = said.join("");
  for (const secret of [canary, token, Buffer.from(`logged:${canary}`).toString("base64")])
    expect(all.includes(secret)).toBe(false);
});

test("a store that fails is told with the id that the client gets, and nothing else is told the client", async () => {
  api.gate = async () => Promise.reject(new Error("SQLITE_FULL: the disk is full"));
  const reply = await api.call("GET", "/domain/", { token });
  api.gate = undefined;
  expect(reply.status).toBe(500);
  expect(JSON.stringify(reply.body)).not.toMatch(/SQLITE|disk/);
  const id = member(reply.body, "request_id");
  const told = lines().filter((line) => line["request_id"] === id);
  expect(told.map(({ msg }) => msg)).toEqual(["a request of the customer API failed", "request"]);
});

test("a body that takes too long is a 408", async () => {
  await using listener = await listenHttp(
    (request, response) => {
      const answer = async (): Promise<void> => {
        const found = await readFields(request, { bodyBytesMax: 100, takesForms: false }, 50);
        const problem = !found.ok && found.answer?.kind === "problem" ? found.answer.problem : {};
        response.end(JSON.stringify(problem));
      };
      void answer();
    },
    { host: "127.0.0.1", port: 0 },
  );
  const socket = connect(listener.port, "127.0.0.1").setEncoding("utf8");
  socket.write("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 50\r\n\r\n{");
  let answer = "";
  socket.on("data", (chunk: string) => (answer += chunk));
  await until("it is answered", () => answer.includes('"status":408'));
  expect(answer).toContain("the body took longer than 0.05 s");
  socket.destroy();
});
