// Unknown tokens are limited by address; a token that was right before is not held up by others of its address.

import { expect, test } from "vitest";
import { openApi } from "../api-harness.ts";

test("beside wrong tokens of its address, who was let in before is let in, and who was not waits", async () => {
  await using api = await openApi();
  const [known, fresh] = [await api.trial("known"), await api.trial("fresh")];
  const ask = async (token: string, address = "192.0.2.7"): Promise<number> => {
    const headers = { "x-forwarded-for": address };
    return (await api.call("GET", "/deployment-site/", { token, headers })).status;
  };
  expect(await ask(known)).toBe(200);
  for (let no = 0; no < 100; no++) expect(await ask(`wrong${no}`)).toBe(401);
  expect(await ask("wrong")).toBe(429);
  expect(await ask(known)).toBe(200);
  expect(await ask(fresh)).toBe(429);
  expect(await ask(fresh, "192.0.2.8")).toBe(200);
  // It proved itself elsewhere, and does so everywhere.
  expect(await ask(fresh)).toBe(200);
});
