// Calls about the accelerator package: which versions there are, downloading one, uploading one.

import { FormData } from "undici";
import {
  packageInfoShape,
  packageLatestShape,
  packageStoredShape,
  type PackageInfo,
  type PackageLatest,
  type PackageStored,
} from "../wire/customer/package.ts";
import type { CallOptions, ApiCalls, Credentials } from "./transport.ts";

export type PackageUpload = {
  readonly version: string;
  /** The name of the wheel; `content` is the whole of it. */
  readonly file: string;
  readonly content: Uint8Array<ArrayBuffer>;
};

export type PackageClient = {
  /** Rejects with NOT_FOUND while there is none. */
  newestPackage(): Promise<PackageLatest>;
  packageInfo(): Promise<PackageInfo>;
  downloadPackage(
    named: { readonly version: string; readonly file: string },
    signal?: AbortSignal,
  ): Promise<AsyncIterable<Uint8Array>>;
  /** Uploads a package, for users who may publish. It sends name and password, whatever the token. */
  uploadPackage(
    upload: PackageUpload,
    publisher: Credentials,
    options?: CallOptions,
  ): Promise<PackageStored>;
};

export function packageClient({ call, download }: ApiCalls): PackageClient {
  const path = "/download/accel_pack/";
  return {
    newestPackage: async () => (await call("GET", path, packageLatestShape.decode)).value,
    packageInfo: async () =>
      (await call("GET", "/upload/accel_pack_v2/", packageInfoShape.decode)).value,
    downloadPackage: async ({ version, file }, signal) =>
      download(`${path}${encodeURIComponent(version)}/${encodeURIComponent(file)}/`, signal),
    uploadPackage: async ({ version, file, content }, basic, options) => {
      const form = new FormData();
      form.set("file", new File([content], file));
      const to = `/upload/accel_pack/${encodeURIComponent(version)}/`;
      return (await call("POST", to, packageStoredShape.decode, { form, basic, ...options })).value;
    },
  };
}
