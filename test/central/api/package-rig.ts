// The customer API with users who may publish packages or not, and ways to upload as them.

import { randomBytes } from "node:crypto";
import { readdirSync } from "node:fs";
import { hashPassword } from "../../../src/central/api/password.ts";
import { basic, form, formHeaders, wheel, wheelName, type FormFile } from "../../support/wheels.ts";
import { openApi, type Api, type Reply } from "./api-harness.ts";

export const password = "correct horse";
export const publisher = basic("publisher", password);

export class PackageRig implements AsyncDisposable {
  readonly api: Api;
  /** Of the publisher. */
  readonly token: string;

  private constructor(api: Api, token: string) {
    this.api = api;
    this.token = token;
  }

  static async open(): Promise<PackageRig> {
    const api = await openApi({
      packages: {
        baseUrl: "https://central.example.com",
        sizeMax: 400_000,
        bootstrapperUrl: "https://downloads.example.com/bootstrapper.sh",
        versions: { bootstrapper: "1.4.0", base_python: "3.13.1" },
        images: undefined,
      },
    });
    const token = await user(api, "publisher", { may_publish: 1 });
    await user(api, "reader", { may_publish: 0 });
    await user(api, "guest", { may_publish: 1, password_hash: null });
    return new PackageRig(api, token);
  }

  async send(
    version: string,
    parts: readonly FormFile[],
    headers: Readonly<Record<string, string>> = publisher,
  ): Promise<Reply> {
    return this.api.call("POST", `/upload/accel_pack/${version}/`, {
      raw: form(parts),
      headers: { ...formHeaders, ...headers },
    });
  }

  async upload(version: string, more: Readonly<Record<string, string>> = {}): Promise<Reply> {
    const part = { name: "file", fileName: wheelName(version), content: wheel(version, 2_000) };
    return this.send(version, [part], { ...publisher, ...more });
  }

  /** Versions, in the order in which they came. */
  async names(): Promise<readonly string[]> {
    const rows = await this.api.store
      .selectFrom("packages")
      .select("version")
      .orderBy("id")
      .execute();
    return rows.map(({ version }) => version);
  }

  /** Files of packages, and those being received. */
  files(): readonly string[] {
    return readdirSync(this.api.packagesDir, { recursive: true, encoding: "utf8" }).filter(
      (name) => name !== "tmp",
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.api[Symbol.asyncDispose]();
  }
}

async function user(
  api: Api,
  username: string,
  rights: { readonly may_publish: number; readonly password_hash?: null },
): Promise<string> {
  const issued = await api.trial(username);
  const password_hash = await hashPassword(password, randomBytes);
  await api.store
    .updateTable("users")
    .set({ password_hash, ...rights })
    .where("username", "=", username)
    .execute();
  return issued;
}
