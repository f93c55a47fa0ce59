// Certificates that devloves order, those of each deployment site, and the symmetric keys that seal them on their way. Private keys come in here and are never shown.

import type { JSX } from "preact";
import { siteName, useFleet } from "../fleet.ts";
import { Answer } from "../parts/pieces.tsx";
import { CertificateOrders } from "../parts/certificate-orders.tsx";
import { SiteCertificates } from "../parts/site-certificates.tsx";
import { SymmetricKeys } from "../parts/symmetric-keys.tsx";

export function CertificatesPage(): JSX.Element {
  const fleet = useFleet();
  return (
    <>
      <h1>Certificates</h1>
      <CertificateOrders />
      <Answer asked={fleet}>
        {({ sites }) =>
          sites.length === 0 ? (
            <p class="quiet">
              Certificates belong to a deployment site. <a href="#/hosts">Make one first.</a>
            </p>
          ) : (
            <>
              {sites.map((site) => (
                <SiteCertificates
                  key={site.name16}
                  name16={site.name16}
                  name={siteName(site)}
                  domains={site.domains}
                />
              ))}
              <SymmetricKeys
                sites={sites.map((site) => ({
                  id: site.deployment_site_id,
                  name: siteName(site),
                }))}
              />
            </>
          )
        }
      </Answer>
    </>
  );
}
