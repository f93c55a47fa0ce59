// What is kept of directories.

import { expect, test } from "vitest";
import { AcmeDirectories } from "../../../src/central/acme/directories.ts";

const never = new AbortController().signal;

test("the documents of 200 directories are kept for an hour, and of each what is needed", async () => {
  let nowMs = 0;
  const asked: string[] = [];
  const http = {
    ask: async ({ url }: { readonly url: string }) => {
      asked.push(url);
      const newNonce = `${url}/nonce`;
      const [newAccount, newOrder] = [`${url}/account`, `${url}/order`];
      const body = JSON.stringify({ newNonce, newAccount, newOrder, more: "x".repeat(1_000) });
      return { kind: "answered", status: 200, headers: {}, body, retryAfterMs: undefined } as const;
    },
  };
  const directories = new AcmeDirectories(http, () => new Date(nowMs));
  const urlOf = (no: number): string => `https://d${no}.example`;
  const documentOf = async (no: number) => directories.document(urlOf(no), never);
  for (let no = 0; no < 200; no++) await documentOf(no);
  const kept = await documentOf(0);
  expect(kept.kind === "ok" && kept.value).toEqual({
    newNonce: "https://d0.example/nonce",
    newAccount: "https://d0.example/account",
    newOrder: "https://d0.example/order",
  });
  expect(asked.length).toBe(200);
  await documentOf(200);
  await documentOf(1);
  expect(asked.splice(0).slice(200)).toEqual([urlOf(200)]);
  await documentOf(0);
  nowMs = 3_600_000;
  await documentOf(200);
  expect(asked).toEqual([urlOf(0), urlOf(200)]);
});
