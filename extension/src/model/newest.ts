/** Which of several questions is the newest: an answer to an earlier one is not shown over it. */

/** Begun with each question; what it returns says whether that question is still the newest. */
export class Newest {
  #begun = 0;

  begin(): () => boolean {
    this.#begun += 1;
    const own = this.#begun;
    return () => own === this.#begun;
  }
}
