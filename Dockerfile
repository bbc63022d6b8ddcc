# The evaluation container for grand-challenge.org (linux/amd64); build it with build.sh,
# which pins BASE by the digest in scripts/container/base-image.txt.
ARG BASE=python:3.13-slim
# Compiles what counts voxels and surfels; nothing else of this stage is taken over.
FROM ${BASE} AS kernel
RUN apt-get update -qq \
    && apt-get install -qq -y --no-install-recommends gcc libc6-dev >/dev/null
COPY flare/evaluation/metrics/kernel.c .
RUN gcc -std=c11 -O3 -ffp-contract=off -fno-tree-vectorize -fvisibility=hidden -fPIC -shared \
        -o _kernel.abi3.so kernel.c

FROM ${BASE}

# The platform runs the container as this user; it needs a name and a home.
RUN groupadd --gid 1000 flare \
    && useradd --uid 1000 --gid flare --create-home flare

ENV PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1

WORKDIR /opt/app
COPY requirements.txt .
# Python's own library is there uncompiled, and no run may write what it compiles. Of what
# was installed, neither pip nor any program that changes the user is of use afterwards.
RUN python -m pip install --no-cache-dir --no-deps --require-hashes --only-binary :all: \
        --disable-pip-version-check --root-user-action ignore -r requirements.txt \
    && python -m compileall -q -x '/(site-packages|test|tests|idlelib)/' \
        "$(python -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')" \
    && python -m pip uninstall --yes --root-user-action ignore pip \
    && find / -xdev -type f -perm /6000 -exec chmod a-s {} +

# Any user can read everything, whatever the permissions were outside. An engine that has
# done this keeps it for the next build, with other labels.
COPY evaluate.py .
COPY flare flare
COPY --from=kernel _kernel.abi3.so flare/evaluation/metrics/
RUN chmod -R a+rX . \
    && python -m compileall -q flare

COPY ground-truth ground-truth

# A challenge's name, decimals for the board, and the commit of the sources; build.sh
# sets them. The folders are the platform's.
ARG CHALLENGE=flare21
ARG DECIMALS=
ARG COMMIT=unknown
ENV FLARE_CHALLENGE=${CHALLENGE} \
    FLARE_DECIMALS=${DECIMALS} \
    FLARE_COMMIT=${COMMIT} \
    FLARE_INPUT=/input \
    FLARE_OUTPUT=/output

# A mistake in the challenge file or the labels fails the build, not a participant's
# evaluation.
RUN chmod -R a+rX ground-truth \
    && python -m flare check-references > references.txt \
    && cat references.txt

# The platform starts this command once for each submission, and no web server.
LABEL org.grand-challenge.api-method=exec

USER flare
ENTRYPOINT ["python", "/opt/app/evaluate.py"]
