// The demo's devlove document.

import { expect, test } from "vitest";
import { demoDevlove } from "../../src/demo/devlove.ts";

test("the devlove names this run's domain and backend, and nothing else of the file changes", () => {
  const devlove: unknown = JSON.parse(
    demoDevlove({ domain: "www.example.test", backendUrl: "http://127.0.0.1:4242" }),
  );
  expect(devlove).toEqual({
    domains: {
      "www.example.test": {
        views_dir: ".",
        index: ["index.html"],
        not_found: "/404.html",
        backend: { urls: ["http://127.0.0.1:4242"], response_timeout_s: 30 },
        cache: {
          rules: [
            { path: "/api/**", bypass: true },
            { path: "/generated/**", query: { ignore: ["utm_*"] } },
          ],
          default: { query: { ignore: ["utm_*"] } },
        },
      },
    },
  });
});
