// Operators' commands for customers, users and tokens against a whole central: what they print, what they change for the customer API, how they fail.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { PassThrough } from "node:stream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { customerCommand } from "../../src/cli/central-customer.ts";
import { tokenCommand } from "../../src/cli/central-token.ts";
import { userCommand } from "../../src/cli/central-user.ts";
import { readSecret, type SecretInput } from "../../src/base/secret-input.ts";
import { textTable } from "../../src/cli/text.ts";
import { AccelError } from "../../src/core/faults.ts";
import { settingsOf, start } from "../support/central-whole.ts";
import { mainFile, node } from "../support/process.ts";
import { tempDir } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";
import { basic, formHeaders } from "../support/wheels.ts";
import { run } from "./command-rig.ts";

const commands = { user: userCommand, token: tokenCommand, customer: customerCommand };
type Name = keyof typeof commands;

let central: Awaited<ReturnType<typeof start>>;
let stateDir: string;
const stack = new AsyncDisposableStack();
beforeAll(async () => {
  stateDir = stack.use(tempDir()).path;
  central = stack.use(await start(settingsOf(stateDir)));
});
afterAll(async () => stack.disposeAsync());

async function say(name: Name, ...args: readonly string[]): Promise<string> {
  return run(commands[name], [...args, "--state-dir", stateDir]);
}

/** What a command gives as JSON. */
async function facts(name: Name, ...args: readonly string[]): Promise<Record<string, unknown>> {
  return Object(JSON.parse(await say(name, ...args, "--json"))) as Record<string, unknown>;
}

async function api(method: string, path: string, token: unknown, body?: object): Promise<number> {
  const { status } = await fetch(`${central.url}/presentation-api/v1${path}`, {
    method,
    headers: { authorization: `Token ${String(token)}`, "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return status;
}

async function publish(username: string, password: string): Promise<number> {
  const { status } = await fetch(`${central.url}/presentation-api/v1/upload/accel_pack/1.0/`, {
    method: "POST",
    headers: { ...formHeaders, ...basic(username, password) },
    body: "no form",
  });
  return status;
}

/** The real program, with something on its standard input. */
async function program(
  args: readonly string[],
  input: string,
): Promise<{ readonly code: unknown; readonly said: string }> {
  const child = spawn(node, [mainFile, "central", ...args, "--state-dir", stateDir]);
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => (said += chunk.toString()));
  child.stdin.end(input);
  const [code] = (await once(child, "close")) as unknown[];
  return { code, said };
}

describe("a customer that an operator made", () => {
  test("gets users; the first of them may delete it, the others may not", async () => {
    const customer = await facts("customer", "add", "Acme & Co");
    expect(customer).toMatchObject({ name: "Acme & Co", created_by: null, users: 0 });
    const id = String(customer["id"]);
    const first = await facts("user", "add", "acme-1", "--customer", id, "--token");
    expect(first).toMatchObject({ username: "acme-1", may_publish: false, may_read_logs: true });
    const second = await facts("user", "add", "acme-2", "--customer", id, "--token");
    expect(await facts("customer", "show", id)).toMatchObject({
      created_by: "acme-1",
      users: [{ username: "acme-1" }, { username: "acme-2" }],
    });
    expect(await api("GET", `/customer/${id}/`, second["token"])).toBe(200);
    expect(await api("DELETE", `/customer/${id}/`, second["token"])).toBe(403);
    expect(await api("DELETE", `/customer/${id}/`, first["token"])).toBe(204);
    await expect(say("customer", "show", id)).rejects.toMatchObject({
      code: "NOT_FOUND",
      hint: "`accel-central customer list` has the number of each.",
    });
  });
});

describe("a user", () => {
  let customer: string;
  let token: unknown;
  beforeAll(async () => {
    customer = String((await facts("customer", "add", "Users Ltd"))["id"]);
    const added = ["--customer", customer, "--email", "u@example.com", "--first-name", "Ulla"];
    token = (await facts("user", "add", "ulla", ...added, "--token"))["token"];
  });

  test("is shown and listed, for a person and for a program", async () => {
    const shown = { username: "ulla", email: "u@example.com", first_name: "Ulla", tokens: 1 };
    expect(await facts("user", "show", "ulla")).toMatchObject(shown);
    expect(await facts("user", "list", "--customer", customer)).toMatchObject([shown]);
    const [heading, line] = (await say("user", "list", "--customer", customer)).split("\n");
    expect(heading).toMatch(/^id +username +customer id +email +may publish/);
    expect(line).toMatch(/^\d+ +ulla +\d+ +u@example\.com +no +yes +no +1 +/);
    expect(await say("user", "show", "ulla")).toMatch(/^username +ulla$/m);
  });

  test("reads request logs until that is revoked", async () => {
    expect(await api("GET", "/incominglogs/", token)).toBe(200);
    expect(await facts("user", "revoke", "ulla", "read-logs")).toMatchObject({
      may_read_logs: false,
    });
    expect(await api("GET", "/incominglogs/", token)).toBe(403);
    await say("user", "grant", "ulla", "read-logs");
    expect(await api("GET", "/incominglogs/", token)).toBe(200);
  });

  test("publishes with a password that came over standard input, while that is granted", async () => {
    expect(await publish("ulla", "correct horse")).toBe(401);
    const set = await program(["user", "password", "ulla"], "correct horse\nsomething else\n");
    expect(set).toMatchObject({ code: 0, said: expect.stringMatching(/has_password +true/) });
    expect(await publish("ulla", "correct horse")).toBe(403);
    await say("user", "grant", "ulla", "publish");
    expect(await publish("ulla", "correct horse")).toBe(400); // Let in; what it sent is no form.
    expect(await publish("ulla", "something else")).toBe(401);
    await say("user", "revoke", "ulla", "publish");
    expect(await publish("ulla", "correct horse")).toBe(403);
  });

  test("has no password any more when the operator takes it away, and no session by it", async () => {
    const signIn = async () =>
      fetch(`${central.url}/presentation-api/v1/session/`, {
        method: "POST",
        headers: basic("ulla", "correct horse"),
      });
    const [cookie = ""] = (await signIn()).headers.getSetCookie();
    const session = async (): Promise<number> => {
      const headers = { cookie: cookie.split(";")[0] ?? "", "sec-fetch-site": "same-origin" };
      return (await fetch(`${central.url}/presentation-api/v1/session/`, { headers })).status;
    };
    expect(await session()).toBe(200);
    expect(await say("user", "password", "ulla", "--none")).toMatch(/has_password +false/);
    expect([await session(), (await signIn()).status]).toEqual([401, 401]);
    await program(["user", "password", "ulla"], "correct horse\n");
  });

  test("an added one may come with a password", async () => {
    const args = ["user", "add", "ute", "--customer", customer, "--password"];
    expect((await program(args, "correct horse")).code).toBe(0);
    expect(await publish("ute", "correct horse")).toBe(403);
    expect(await program(["user", "password", "ute"], "short\n")).toMatchObject({
      code: 2,
      said: expect.stringContaining("/password"),
    });
    expect(await program(["user", "password", "ute"], "")).toMatchObject({
      code: 2,
      said: expect.stringContaining("no password on standard input"),
    });
    expect(await publish("ute", "correct horse")).toBe(403);
  });

  test("is locked and unlocked, and gets another address", async () => {
    expect(await facts("user", "lock", "ulla")).toMatchObject({ when_locked: expect.any(String) });
    expect(await api("GET", "/customer/", token)).toBe(401);
    expect(await publish("ulla", "correct horse")).toBe(401);
    expect(await facts("user", "unlock", "ulla")).toMatchObject({ when_locked: null });
    expect(await api("GET", "/customer/", token)).toBe(200);
    expect(await publish("ulla", "correct horse")).toBe(403);
    const moved = await facts("user", "email", "ulla", "ulla@example.org");
    expect(moved).toMatchObject({ username: "ulla", email: "ulla@example.org" });
    for (const args of [
      ["lock"],
      ["lock", "ulla", "x"],
      ["email", "ulla"],
      ["email", "ulla", "none"],
    ])
      await expect(say("user", ...args)).rejects.toMatchObject({ code: "USAGE" });
    for (const args of [
      ["lock", "nobody"],
      ["email", "nobody", "a@b.org"],
    ])
      await expect(say("user", ...args)).rejects.toMatchObject({ code: "NOT_FOUND" });
    await say("user", "email", "ulla", "u@example.com");
  });

  test("gets a token that may do less", async () => {
    const owner = { "content-type": "application/json", authorization: `Token ${String(token)}` };
    const body = JSON.stringify({ name: "shop.example.com" });
    const domains = `${central.url}/presentation-api/v1/domain/`;
    expect((await fetch(domains, { method: "POST", headers: owner, body })).status).toBe(201);
    const asked = ["--name", "the pipeline", "--role", "clear", "--for", "90d"];
    const where = ["--domains", "Shop.example.com"];
    const issued = await facts("token", "issue", "ulla", ...asked, ...where);
    expect(issued).toMatchObject({
      name: "the pipeline",
      role: "clear",
      domains: ["shop.example.com"],
      when_expires: expect.stringMatching(/^\d{4}-/),
    });
    expect(await api("GET", "/domain/shop.example.com/", issued["token"])).toBe(200);
    expect(await api("GET", "/customer/", issued["token"])).toBe(403);
    expect(await say("token", "list", "--user", "ulla")).toMatch(
      / the pipeline +clear +shop\.example\.com +\d{4}-\S+ +\d{4}-\S+ +\d{4}-/,
    );
    await say("token", "revoke", String(issued["id"]));
    expect(await api("GET", "/domain/", issued["token"])).toBe(401);
  });

  test("gets and loses tokens", async () => {
    const issued = await facts("token", "issue", "ulla");
    expect(await api("GET", "/customer/", issued["token"])).toBe(200);
    expect(await say("token", "list", "--user", "ulla")).not.toContain(String(issued["token"]));
    expect(await facts("token", "list", "--user", "ulla")).toHaveLength(2);
    await say("token", "revoke", String(issued["id"]));
    expect(await api("GET", "/customer/", issued["token"])).toBe(401);
    expect(await api("GET", "/customer/", token)).toBe(200);
    expect(await facts("token", "list", "--customer", customer)).toHaveLength(1);
    expect(await facts("token", "list", "--user", "ulla", "--all")).toHaveLength(4);
    expect(await say("token", "revoke", "--user", "ulla")).toMatch(/^\d+ +ulla /m);
    expect(await api("GET", "/customer/", token)).toBe(401);
    expect(await say("token", "list", "--user", "ulla")).toBe("no tokens\n");
    token = (await facts("token", "issue", "ulla"))["token"];
  });
});

test.each<readonly [Name, string, string, RegExp]>([
  ["user", "", "USAGE", /one of add, list, show/],
  ["user", "remove x", "USAGE", /one of add, list, show/],
  ["user", "add x", "USAGE", /takes --customer/],
  ["user", "add --customer 1", "USAGE", /takes a name/],
  ["user", "add x --customer one", "USAGE", /takes a number, not one/],
  ["user", "add x --customer 999999", "NOT_FOUND", /no customer 999999/],
  ["user", "add ulla --customer 2", "CONFLICT", /ulla is in use/],
  ["user", "add u,x --customer 2", "USAGE", /\/username/],
  ["user", "add ulla2 --customer 2 --email nobody", "USAGE", /\/email/],
  ["user", "list ulla", "USAGE", /takes no name/],
  ["user", "show", "USAGE", /takes a name/],
  ["user", "show nobody", "NOT_FOUND", /no user nobody/],
  ["user", "show ulla publish", "USAGE", /takes a name/],
  ["user", "show ulla --token", "USAGE", /--token goes with user add/],
  ["user", "lock ulla --none", "USAGE", /--none goes with user password/],
  ["user", "grant ulla", "USAGE", /publish or read-logs/],
  ["user", "grant ulla everything", "USAGE", /\/permission/],
  ["user", "grant nobody publish", "NOT_FOUND", /no user nobody/],
  ["user", "password x secret", "USAGE", /takes a name/],
  ["token", "", "USAGE", /one of list, issue, revoke/],
  ["token", "list ulla", "USAGE", /takes --user/],
  ["token", "list --user nobody", "NOT_FOUND", /no user nobody/],
  ["token", "issue", "USAGE", /takes the name/],
  ["token", "issue nobody", "NOT_FOUND", /no user nobody/],
  ["token", "issue ulla --role root", "USAGE", /role.*read.*owner/],
  ["token", "issue ulla --domains www.example.org", "USAGE", /no main domain of this customer/],
  ["token", "issue ulla --for 1s", "USAGE", /--for 1s: must be a time from 1min/],
  ["token", "list --role read", "USAGE", /go with token issue only/],
  ["token", "revoke", "USAGE", /number of a token, or --user/],
  ["token", "revoke 3 --user ulla", "USAGE", /number of a token, or --user/],
  ["token", "revoke 999999", "NOT_FOUND", /no token 999999 in force/],
  ["token", "revoke 3 --all", "USAGE", /go with token list/],
  ["customer", "", "USAGE", /one of list, show, add/],
  ["customer", "add", "USAGE", /takes a name/],
  ["customer", "show", "USAGE", /takes a number/],
  ["customer", "show acme", "USAGE", /takes a number, not acme/],
  ["customer", "show 999999", "NOT_FOUND", /no customer 999999/],
  ["customer", "list x", "USAGE", /takes no name/],
])("%s %s fails with %s", async (name, args, code, message) => {
  const given = args.split(" ").filter((arg) => arg !== "");
  const failed = await say(name, ...given).catch((error: unknown) => error);
  expect(failed).toBeInstanceOf(AccelError);
  expect(failed).toMatchObject({ code, message: expect.stringMatching(message) });
});

test("a conflict changes nothing", async () => {
  const before = await facts("user", "show", "ulla");
  await expect(say("user", "add", "ulla", "--customer", "1")).rejects.toThrow();
  expect(await facts("user", "show", "ulla")).toEqual(before);
});

test("customers are listed, and nobody's name steers the terminal", async () => {
  const names = (await facts("customer", "list")) as unknown as readonly { name: string }[];
  expect(names.map(({ name }) => name)).toContain("Users Ltd");
  expect(await say("customer", "list")).toMatch(/^\d+ +Users Ltd .* ulla +2 +0 +1$/m);
  expect(textTable([{ name: "a\u001b[2Jb", on: null }], ["name", "on"], "none")).toBe(
    "name    on\na?[2Jb  –\n",
  );
});

class Terminal extends PassThrough {
  readonly isTTY = true;
  readonly modes: boolean[] = [];
  setRawMode(mode: boolean): void {
    this.modes.push(mode);
  }
}

describe("a password at a terminal", () => {
  const never = new AbortController().signal;
  async function type(...keys: readonly string[]) {
    const terminal = new Terminal();
    const input: SecretInput = terminal;
    let said = "";
    const read = readSecret("password", input, (text) => void (said += text), never);
    read.catch(() => undefined); // It is awaited below.
    for (const [at, key] of keys.entries()) {
      await until("it is listened to", () => terminal.listenerCount("data") > 0 || at > 0);
      terminal.write(key);
    }
    return { read, terminal, said: () => said };
  }

  test("is asked for twice and not shown", async () => {
    const typed = await type("secret wo", "rdx\u007f\r", "secret word\r");
    expect(await typed.read).toBe("secret word");
    expect(typed.said()).toBe("password: \npassword, again: \n");
    expect(typed.terminal.modes).toEqual([true, false]);
  });

  test("may come at once, as when pasted", async () => {
    expect(await (await type("word one\nword one\n")).read).toBe("word one");
  });

  test("that differs is refused, and so is an interruption", async () => {
    const differing = await type("word one\rword two\r");
    await expect(differing.read).rejects.toMatchObject({ code: "USAGE" });
    const interrupted = await type("word\u0003");
    await expect(interrupted.read).rejects.toMatchObject({ code: "USAGE" });
    expect(interrupted.terminal.modes).toEqual([true, false]);
  });
});
