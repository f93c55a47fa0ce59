// An edge that listens for HTTPS too, with certificates, before one origin.

import type { SiteInput } from "../../../src/core/serving/effective-devlove.ts";
import type { InstalledCertificate } from "../../../src/core/serving/certificate-table.ts";
import type { Views } from "../../../src/core/serving/serving-state.ts";
import { Edge, openOrigin, stateOf, type EdgeOptions, type Origin } from "./edge.ts";
import { installed, tableOf } from "./secure-clients.ts";
import type { Handler } from "./stage.ts";

export type SecureOptions = EdgeOptions & {
  readonly certificates?: readonly InstalledCertificate[];
  readonly site?: SiteInput;
  readonly views?: Views;
};

export type SecureEdge = AsyncDisposable & { readonly edge: Edge; readonly port: number };

export async function openSecure(options: SecureOptions = {}): Promise<SecureEdge> {
  const { certificates = [installed()], site = {}, views } = options;
  const edge = new Edge(options);
  await edge.listen();
  const port = await edge.listenSecure();
  edge.publish({ ...stateOf(1, site, views), certificates: tableOf(...certificates) });
  return { edge, port, [Symbol.asyncDispose]: async () => edge[Symbol.asyncDispose]() };
}

export type SecureStage = SecureEdge & { readonly origin: Origin };

export async function openSecureStage(
  handler: Handler,
  options: SecureOptions = {},
): Promise<SecureStage> {
  let asked = 0;
  const origin = await openOrigin((request, response) => handler(request, response, ++asked));
  const backend = { urls: [origin.url], retries: 0 };
  const secure = await openSecure({ ...options, site: { ...options.site, backend } });
  return {
    ...secure,
    origin,
    [Symbol.asyncDispose]: async () => {
      await secure[Symbol.asyncDispose]();
      await origin[Symbol.asyncDispose]();
    },
  };
}
