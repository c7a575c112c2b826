"""Regularisation of recurrent networks, as language models have it (README.md): dropped weights, penalties of states.

    plugin    --weight-drop, --activation-penalty, --change-penalty
"""
