// Calls about who owns what: trials, customers, deployment sites, domains.

import { customerShape, type Customer } from "../wire/customer/customer.ts";
import { deploymentSiteShape, type DeploymentSite } from "../wire/customer/deployment-site.ts";
import {
  enrolmentMadeShape,
  enrolmentShape,
  type Enrolment,
  type EnrolmentMade,
} from "../wire/customer/enrolment.ts";
import { domainShape, type Domain } from "../wire/customer/domain.ts";
import {
  trialShape,
  userProfileShape,
  type Trial,
  type UserProfile,
} from "../wire/customer/user.ts";
import { arrayOf, nothing, type CallOptions, type ApiCalls } from "./transport.ts";

export type LinkBy = { readonly tags: string } | { readonly deploymentSiteId: number };

export type OwnershipClient = {
  /** Makes a customer and its first user. Needs no token. */
  trial(
    user: { readonly username: string; readonly email?: string },
    options?: CallOptions,
  ): Promise<Trial>;
  customers(): Promise<readonly Customer[]>;
  customer(id: number): Promise<Customer>;
  renameCustomer(id: number, name: string): Promise<Customer>;
  /** Deletes the customer with all that it owns. */
  deleteCustomer(id: number): Promise<void>;
  userProfile(userId: number): Promise<UserProfile>;
  /** Changes the fields that are given; the others stay. The password is never read back. */
  editUserProfile(
    userId: number,
    edited: Partial<Omit<UserProfile, "id" | "date_joined">> & { readonly password?: string },
  ): Promise<UserProfile>;
  createSite(tags: string, options?: CallOptions): Promise<DeploymentSite>;
  sites(): Promise<readonly DeploymentSite[]>;
  site(id: number): Promise<DeploymentSite>;
  setSiteTags(id: number, tags: string): Promise<DeploymentSite>;
  /** Makes a new secret; the previous one is accepted for `graceSeconds` more. */
  rotateSecret(id: number, graceSeconds: number, options?: CallOptions): Promise<DeploymentSite>;
  deleteSite(id: number): Promise<void>;
  /** Makes a code for `accel-agent join`; it is shown this once. */
  createEnrolment(
    siteId: number,
    asked?: { readonly uses?: number; readonly lifetimeSeconds?: number },
    options?: CallOptions,
  ): Promise<EnrolmentMade>;
  enrolments(siteId: number): Promise<readonly Enrolment[]>;
  enrolment(siteId: number, id: number): Promise<Enrolment>;
  /** Hosts that have joined with the code are not touched. */
  revokeEnrolment(siteId: number, id: number): Promise<void>;
  createDomain(name: string, link?: LinkBy, options?: CallOptions): Promise<Domain>;
  domains(): Promise<readonly Domain[]>;
  domain(name: string): Promise<Domain>;
  putSubDomain(
    domain: string,
    subDomain: { readonly name: string; readonly sharesViews: boolean },
  ): Promise<Domain>;
  linkDomain(domain: string, deploymentSiteId: number): Promise<Domain>;
  unlinkDomain(domain: string, deploymentSiteId: number): Promise<void>;
  deleteDomain(name: string): Promise<void>;
};

export function ownershipClient({ call }: Pick<ApiCalls, "call">): OwnershipClient {
  return {
    ...siteCalls({ call }),
    ...enrolmentCalls({ call }),
    ...domainCalls({ call }),
    trial: async (body, options) =>
      (await call("POST", "/trial/", trialShape.decode, { body, ...options })).value,
    customers: async () => (await call("GET", "/customer/", arrayOf(customerShape))).value,
    customer: async (id) => (await call("GET", `/customer/${id}/`, customerShape.decode)).value,
    renameCustomer: async (id, name) =>
      (await call("PUT", `/customer/${id}/`, customerShape.decode, { body: { name } })).value,
    deleteCustomer: async (id) => void (await call("DELETE", `/customer/${id}/`, nothing)),
    userProfile: async (id) =>
      (await call("GET", `/user-profile/${id}/`, userProfileShape.decode)).value,
    editUserProfile: async (id, body) =>
      (await call("PUT", `/user-profile/${id}/`, userProfileShape.decode, { body })).value,
  };
}

type SiteCalls = Pick<
  OwnershipClient,
  "createSite" | "sites" | "site" | "setSiteTags" | "rotateSecret" | "deleteSite"
>;

type EnrolmentCalls = Pick<
  OwnershipClient,
  "createEnrolment" | "enrolments" | "enrolment" | "revokeEnrolment"
>;

function enrolmentCalls({ call }: Pick<ApiCalls, "call">): EnrolmentCalls {
  const path = (siteId: number): string => `/deployment-site/${siteId}/enrolment/`;
  return {
    createEnrolment: async (siteId, { uses, lifetimeSeconds } = {}, options) => {
      const body = {
        ...(uses !== undefined && { uses }),
        ...(lifetimeSeconds !== undefined && { lifetime_seconds: lifetimeSeconds }),
      };
      const { decode } = enrolmentMadeShape;
      return (await call("POST", path(siteId), decode, { body, ...options })).value;
    },
    enrolments: async (siteId) => (await call("GET", path(siteId), arrayOf(enrolmentShape))).value,
    enrolment: async (siteId, id) =>
      (await call("GET", `${path(siteId)}${id}/`, enrolmentShape.decode)).value,
    revokeEnrolment: async (siteId, id) =>
      void (await call("DELETE", `${path(siteId)}${id}/`, nothing)),
  };
}

function siteCalls({ call }: Pick<ApiCalls, "call">): SiteCalls {
  const { decode } = deploymentSiteShape;
  const path = (id: number): string => `/deployment-site/${id}/`;
  return {
    createSite: async (tags, options) =>
      (await call("POST", "/deployment-site/", decode, { body: { tags }, ...options })).value,
    sites: async () => (await call("GET", "/deployment-site/", arrayOf(deploymentSiteShape))).value,
    site: async (id) => (await call("GET", path(id), decode)).value,
    setSiteTags: async (id, tags) =>
      (await call("PUT", path(id), decode, { body: { tags } })).value,
    rotateSecret: async (id, graceSeconds, options) => {
      const body = { grace_seconds: graceSeconds };
      return (await call("POST", `${path(id)}rotate-secret/`, decode, { body, ...options })).value;
    },
    deleteSite: async (id) => void (await call("DELETE", path(id), nothing)),
  };
}

type DomainCalls = Pick<
  OwnershipClient,
  | "createDomain"
  | "domains"
  | "domain"
  | "putSubDomain"
  | "linkDomain"
  | "unlinkDomain"
  | "deleteDomain"
>;

function domainCalls({ call }: Pick<ApiCalls, "call">): DomainCalls {
  const { decode } = domainShape;
  const path = (name: string): string => `/domain/${encodeURIComponent(name)}/`;
  return {
    createDomain: async (name, link, options) => {
      const linked =
        link === undefined
          ? {}
          : "tags" in link
            ? { link_to_deployment_sites_with_tags: link.tags }
            : { deployment_site_id: link.deploymentSiteId };
      const body = { name, ...linked };
      return (await call("POST", "/domain/", decode, { body, ...options })).value;
    },
    domains: async () => (await call("GET", "/domain/", arrayOf(domainShape))).value,
    domain: async (name) => (await call("GET", path(name), decode)).value,
    putSubDomain: async (domain, { name, sharesViews }) => {
      const sub_domain = { name, share_views_and_views_dir_with_main_domain: sharesViews };
      return (await call("PUT", path(domain), decode, { body: { sub_domain } })).value;
    },
    linkDomain: async (domain, deploymentSiteId) => {
      const body = { deployment_site_id: deploymentSiteId };
      return (await call("PUT", path(domain), decode, { body })).value;
    },
    unlinkDomain: async (domain, id) =>
      void (await call("DELETE", `${path(domain)}deployment-sites/${id}/`, nothing)),
    deleteDomain: async (name) => void (await call("DELETE", path(name), nothing)),
  };
}
