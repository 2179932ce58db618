/** The doctor's report as text. */

import type { DoctorReport } from "../protocol.ts";
import { plain } from "./text.ts";

/** Where we look, how much is there, and each finding with its way out. */
export function doctorText(report: DoctorReport): string {
  const head = [
    `Codex home: ${plain(report.codexHome)}`,
    `State folder: ${plain(report.stateDir)}`,
    `Sessions: ${report.sessions}`,
  ];
  const findings = report.findings.map((finding) =>
    [
      `${finding.severity.toUpperCase()}  ${finding.code} (${finding.count})`,
      `    ${plain(finding.message)}`,
      ...(finding.path === null ? [] : [`    ${plain(finding.path)}`]),
      `    → ${plain(finding.wayOut)}`,
    ].join("\n"),
  );
  if (findings.length === 0) {
    findings.push("Nothing to report: everything that is there can be read.");
  }
  const skipped = Object.entries(report.skipped).map(
    ([reason, count]) => `    ${reason}: ${count}`,
  );
  if (skipped.length > 0) {
    findings.push(["Left aside, by reason:", ...skipped].join("\n"));
  }
  return `${[head.join("\n"), ...findings].join("\n\n")}\n`;
}
