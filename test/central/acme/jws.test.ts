// What directories verify.

import { createPrivateKey } from "node:crypto";
import { expect, test } from "vitest";
import { keyAuthorization } from "../../../src/central/acme/jws.ts";

test("what answers a challenge is the token and the thumbprint of RFC 8555 §8.1", () => {
  // The key of RFC 7515, appendix A.3; its thumbprint by RFC 7638.
  const key = createPrivateKey({
    key: {
      kty: "EC",
      crv: "P-256",
      x: "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
      y: "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
      d: "jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI",
    },
    format: "jwk",
  });
  expect(keyAuthorization(key, "t")).toBe("t.oKIywvGUpTVTyxMQ3bwIIeQUudfr_CkLMjCE19ECD-U");
});
