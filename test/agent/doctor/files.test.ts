// What the doctor says of who can read the secret, and of the authority of central.

import { expect, test } from "vitest";
import { checkAuthority, judgeSecretFile } from "../../../src/agent/doctor/files.ts";

test.each([
  [0, 0o600, false, "ok", /readable by its owner alone/],
  [7, 0o400, false, "ok", /readable by its owner alone/],
  [7, 0o600, true, "ok", /readable by its owner alone/],
  [8, 0o600, false, "warning", /user with the id 8, who is neither root nor the agent's/],
  [8, 0o600, true, "warning", /user with the id 8/],
  [0, 0o640, true, "warning", /other users \(mode 640\)/],
  [0, 0o040, true, "warning", /other users \(mode 040\)/],
  [0, 0o000, false, "warning", /nobody but root \(mode 000\)/],
  [7, 0o000, false, "warning", /nobody but root/],
  [0, 0o000, true, "ok", /readable by root alone, as which systemd reads it/],
] as const)(
  "a secret of user %i with mode %o, loaded by systemd: %s: %s",
  (uid, mode, isLoaded, state, words) => {
    const judged = judgeSecretFile(
      "/s",
      { uid, mode: 0o100_000 | mode },
      { users: [0, 7], isLoaded },
    );
    expect(judged).toMatchObject({ check: "secret", state, text: expect.stringMatching(words) });
  },
);

test("the authority of a central that is asked over plain http, and over https", () => {
  const at = (url: string, path?: string): object =>
    checkAuthority({ central_url: url, central_ca_file: path }, { uid: 0 });
  expect(at("http://127.0.0.1:8443")).toMatchObject({
    state: "skipped",
    text: "central is on this host and asked over plain http: there is no certificate to trust",
  });
  expect(at("https://central.example.com")).toMatchObject({
    state: "skipped",
    text: "central is trusted by this system's authorities",
  });
  // The agent reads it whatever the address is, and does not start without it.
  expect(at("http://127.0.0.1:8443", "/nowhere/ca.pem")).toMatchObject({ state: "failed" });
});
