// The file that every host which joins is given: a certificate, read anew each time, and never a key.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readAuthority } from "../../../src/central/settings/authority.ts";
import { authorityDigestOf } from "../../../src/wire/enrolment.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { makeCertificate } from "../../support/x509.ts";

test("it is given as it lies there now; without the setting there is none", () => {
  using dir = tempDir();
  const path = join(dir.path, "ca.pem");
  for (const subject of ["One", "Another"]) {
    const { pem } = makeCertificate({ subject, isAuthority: true });
    writeFileSync(path, pem);
    expect(readAuthority(path)).toEqual({ pem, digest: authorityDigestOf(pem) });
  }
  expect(readAuthority(undefined)).toBeUndefined();
});

test("a file that is gone, holds no certificate, or holds a private key beside it is refused", () => {
  using dir = tempDir();
  const path = join(dir.path, "ca.pem");
  const refused = (words: RegExp): void =>
    expect(() => readAuthority(path)).toThrow(
      expect.objectContaining({
        code: "FILE_UNUSABLE",
        message: expect.stringMatching(words),
      }),
    );
  refused(/cannot be read/);
  writeFileSync(path, "no certificate\n");
  refused(/holds no certificate/);
  const { pem, key } = makeCertificate({ subject: "An authority", isAuthority: true });
  for (const text of [`${pem}${key}`, `${key}${pem}`]) {
    writeFileSync(path, text);
    refused(/holds a private key/);
  }
});
