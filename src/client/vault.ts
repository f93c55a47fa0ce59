// Calls about symmetric keys and certificates.

import {
  certificateShape,
  certificateStoredShape,
  type Certificate,
  type CertificateStored,
} from "../wire/customer/certificate.ts";
import {
  certificateOrderShape,
  type CertificateOrder,
} from "../wire/customer/certificate-order.ts";
import { symmetricKeyShape, type SymmetricKey } from "../wire/customer/symmetric-key.ts";
import { arrayOf, nothing, type CallOptions, type ApiCalls } from "./transport.ts";

export type VaultClient = {
  createSymmetricKey(deploymentSiteId: number, options?: CallOptions): Promise<SymmetricKey>;
  symmetricKeys(): Promise<readonly SymmetricKey[]>;
  symmetricKey(id: number): Promise<SymmetricKey>;
  bindSymmetricKey(id: number, deploymentSiteId: number): Promise<SymmetricKey>;
  /**
   * Uploads certificate and key, both as PEM, in place of a certificate for the same names. `name16` is the
   * deployment's.
   */
  uploadCertificate(
    name16: string,
    pem: { readonly certificate: string; readonly privateKey: string },
    options?: CallOptions,
  ): Promise<CertificateStored>;
  certificates(name16: string): Promise<readonly Certificate[]>;
  deleteCertificate(name16: string, id: number): Promise<void>;
  /** The certificates that devloves order, and how each order stands. */
  certificateOrders(): Promise<readonly CertificateOrder[]>;
  /** Has an order that failed, or waits for hosts, tried now. */
  tryCertificateOrder(id: number, options?: CallOptions): Promise<CertificateOrder>;
};

export function vaultClient({ call }: Pick<ApiCalls, "call">): VaultClient {
  const { decode } = symmetricKeyShape;
  const keyPath = (id: number): string => `/symenckeys/${id}/`;
  const certificatesPath = (name16: string): string =>
    `/upload/certificates/${encodeURIComponent(name16)}/`;
  return {
    createSymmetricKey: async (id, options) => {
      const body = { deployment_site_id: id };
      return (await call("POST", "/symenckeys/", decode, { body, ...options })).value;
    },
    symmetricKeys: async () =>
      (await call("GET", "/symenckeys/", arrayOf(symmetricKeyShape))).value,
    symmetricKey: async (id) => (await call("GET", keyPath(id), decode)).value,
    bindSymmetricKey: async (id, deploymentSiteId) => {
      const body = { deployment_site_id: deploymentSiteId };
      return (await call("PUT", keyPath(id), decode, { body })).value;
    },
    uploadCertificate: async (name16, { certificate, privateKey }, options) => {
      const body = { certificate, private_key: privateKey };
      const path = certificatesPath(name16);
      return (await call("POST", path, certificateStoredShape.decode, { body, ...options })).value;
    },
    certificates: async (name16) =>
      (await call("GET", certificatesPath(name16), arrayOf(certificateShape))).value,
    deleteCertificate: async (name16, id) =>
      void (await call("DELETE", `${certificatesPath(name16)}${id}/`, nothing)),
    certificateOrders: async () =>
      (await call("GET", "/certificate-orders/", arrayOf(certificateOrderShape))).value,
    tryCertificateOrder: async (id, options) => {
      const path = `/certificate-orders/${id}/try/`;
      return (await call("POST", path, certificateOrderShape.decode, options)).value;
    },
  };
}
