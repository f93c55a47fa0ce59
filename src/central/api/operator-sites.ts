// What operators' commands do with deployment sites, across customers: list and make them, and make codes with which hosts
// join. Secrets are not shown; a host gets its secret for its code.

import type { ControlRoutes } from "../../base/control-socket.ts";
import { AccelError } from "../../core/faults.ts";
import { writeCode } from "../../wire/enrolment.ts";
import {
  decodeSiteAdd,
  decodeSiteCodes,
  decodeSiteEnrol,
  decodeSiteList,
  decodeSiteRevokeCode,
} from "../../wire/operator.ts";
import { tooManyCodes } from "./enrolments.ts";
import { parseTags } from "./http/path-values.ts";
import { change, handler, noSite, pages, personNamed, read } from "./operator-routes.ts";
import { readAuthority } from "../settings/authority.ts";
import type { CentralSettings } from "../settings/fields.ts";
import { isLoopbackHost } from "../settings/store-fields.ts";
import type { Transactions } from "../store/engine/customer-store.ts";
import type { Work } from "../store/engine/work.ts";
import { createEnrolment, listEnrolments, revokeEnrolment } from "../store/journal/enrolments.ts";
import { createSite, sitesOfAll, type SiteLine } from "../store/journal/sites.ts";

export type OperatorSiteDeps = {
  readonly store: Transactions;
  readonly settings: Pick<CentralSettings, "base_url" | "ca_file">;
};

export function operatorSiteRoutes({ store, settings }: OperatorSiteDeps): ControlRoutes {
  const { base_url: base } = settings;
  const address = { base_url: base, central_url: isForHosts(base) ? base : null };
  return {
    "site-list": handler(decodeSiteList, ({ customer_id: customerId }) =>
      pages(store, async (work, range) => sitesOfAll(work, { customerId }, range)),
    ),
    "site-add": handler(decodeSiteAdd, async ({ operator, username, tags: text = "" }) => {
      const tags = parseTags(text);
      if (tags === undefined)
        throw new AccelError("USAGE", "tags: at most 100, of at most 255 characters each");
      return change(store, operator, "site add", async (work, tell) => {
        const person = await personNamed(work, username);
        const owner = { customerId: person.customer_id, userId: person.id };
        const id = await createSite(work, owner, tags);
        tell({
          customer_id: person.customer_id,
          ids: { deployment_site_id: id },
          change: { username, tags: [...tags] },
        });
        return siteOf(work, id);
      });
    }),
    "site-enrol": handler(decodeSiteEnrol, async (asked) => {
      const { operator, deployment_site_id: siteId, uses, lifetime_seconds: lifetimeS } = asked;
      const trusted = readAuthority(settings.ca_file);
      return change(store, operator, "site enrol", async (work, tell) => {
        const site = await siteOf(work, siteId);
        const createdBy = `operator ${operator}`;
        const made = await createEnrolment(work, siteId, { uses, lifetimeS, createdBy });
        if (made === "too-many") throw new AccelError("CONFLICT", tooManyCodes(siteId));
        const { record, code } = made;
        tell({
          customer_id: site.customer_id,
          ids: { deployment_site_id: siteId, enrolment_id: record.id },
          change: { uses: record.uses, when_expires: record.when_expires },
        });
        return { ...record, code: writeCode(code, trusted?.digest), ...address };
      });
    }),
    "site-codes": handler(decodeSiteCodes, async ({ deployment_site_id: siteId }) => {
      await read(store, async (work) => siteOf(work, siteId));
      return pages(store, async (work, range) => listEnrolments(work, siteId, range));
    }),
    "site-revoke-code": handler(decodeSiteRevokeCode, async (asked) => {
      const { operator, deployment_site_id: siteId, enrolment_id: id } = asked;
      return change(store, operator, "site revoke", async (work, tell) => {
        const site = await siteOf(work, siteId);
        if (!(await revokeEnrolment(work, siteId, id)))
          throw new AccelError("NOT_FOUND", `deployment site ${siteId} has no code ${id}`, {
            hint: `\`accel-central site codes ${siteId}\` has the number of each.`,
          });
        tell({
          customer_id: site.customer_id,
          ids: { deployment_site_id: siteId, enrolment_id: id },
          change: {},
        });
        return { deployment_site_id: siteId, enrolment_id: id, state: "revoked" };
      });
    }),
  };
}

/** Whether another host can join at this address: an agent takes plain http for loopback alone. */
function isForHosts(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  // At all addresses of a host somebody listens; a connection to them goes to the host itself.
  const isOfAll = host === "0.0.0.0" || host === "::";
  return protocol === "https:" && !isOfAll && !isLoopbackHost(host);
}

async function siteOf(work: Work, id: number): Promise<SiteLine> {
  const [site] = await sitesOfAll(work, {}, { after: id - 1, limit: 1 });
  if (site?.id !== id) throw noSite(id);
  return site;
}
