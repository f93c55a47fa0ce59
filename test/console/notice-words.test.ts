// Notifications in words: what became of a subscription, and the hook of a chat without its secret.

import { expect, test } from "vitest";
import { hookWords } from "../../src/console/hook-words.ts";
import { subscriptionWords } from "../../src/console/subscription-words.ts";

test("an end and a pause read differently", () => {
  expect(subscriptionWords("unsubscribed", false)).toBe("gets these messages no more");
  expect(subscriptionWords("unsubscribed", true)).toContain("again in 30 days");
  expect(subscriptionWords("no_subscription", true)).toContain("never subscribed");
});

test.each([
  ["https://chat.example.com/hooks/8f14e45f", "https://chat.example.com/…"],
  ["https://anna:pass@chat.example.com:8443/?key=8f14", "https://chat.example.com:8443/…"],
  ["no address", "…"],
])("%s", (url, words) => {
  expect(hookWords(url)).toBe(words);
});
